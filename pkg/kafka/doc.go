// Package kafka is the log: topics, appending, reading as a member of a consumer group, and
// reading small topics from their beginning. It is the only package that imports kafka-go.
//
// It uses kafka-go for connections (TLS, SASL, the cluster's layout), for topic administration and
// for the consumer group protocol, and encodes and decodes the three requests of the hot path
// itself (produce, fetch, list offsets): one request then carries many partitions, and all records
// of a response share its buffer. Kafka 2.4 or later is needed.
//
// What to know about kafka-go before changing anything here:
//   - Its Reader hides rebalances and goes on returning records of partitions that were taken
//     away. Only ConsumerGroup is used; fetch loops and buffers live and die with a generation.
//   - A zero Writer asks for no acknowledgement and spreads records round robin. It is not used:
//     [Client.Append] always asks all in-sync replicas, and partitions by Murmur2 like Java.
//   - It has no idempotent producer: a retry may append twice, so every reader tolerates repeats.
//   - Its record decoder takes the producer's timestamps also where the topic has LogAppendTime;
//     decodeBatch takes the broker's.
//   - Its ListOffsets and Fetch send a request, and open a connection, for each partition.
//   - ConsumerGroup starts a partition without a committed offset where its StartOffset says,
//     and would start at a committed offset that the log does not have; [Group.Next] checks.
//   - Generation.CommitOffsets uses the connection of its generation: after a rebalance the error
//     may be an error code or a closed connection. [Generation.Commit] maps all of them.
//   - A function started by Generation.Start ends the generation by returning.
//   - A connection reads until its deadline after its context was cancelled: every exchange has
//     one.
package kafka
