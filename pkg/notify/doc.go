// Package notify brings messages to their receivers: it hides webhooks, e-mail, Alertmanager, their
// ways to fail, and the patience that they need.
//
// In goes a [Message] that somebody else decided on, with the channels that budgets and policies
// name. [Queue] turns it into one pending [Delivery] a channel. [Deliverer] sends what is due, with
// the same id at each attempt, and repeats what failed for a day; then the delivery is a dead
// letter. Both keep nothing that counts: the [Store] says what is pending, so another process, or
// the next one, goes on where it stopped. A crash between sending and writing sends again: delivery
// is at least once, and the id tells receivers what they know already.
//
// It never decides whether an alert fires, and never connects to an address of a private network
// that was not allowed, whatever a URL, a redirect or a name server says.
package notify
