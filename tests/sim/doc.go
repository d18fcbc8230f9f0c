// Package sim runs the loops of the pipeline in a world that one seed decides: a log that
// rebalances, repeats and loses answers, a store whose inserts land late or in part, raters that
// crash, stop and come back as zombies, and a fleet that duplicates, delays and misdirects its
// events. When the faults end and all is drained, an auditor that shares no code with the product
// says what the bill is. In every other world months end: billers close and decide while usage is
// late, voided, repeated or priced anew and people give invoices back or judge what is held, and
// the documents are held against the billing log and against the drafts of a log to which nothing
// happened. A world of its own has billers that decide budget alerts and deliver them, with budgets
// that change, clocks that step and rivals that decide at the same moment: each alert is decided
// once and told. All of it is in the package's tests, in one thread and in simulated time; nothing
// here is part of a program.
package sim
