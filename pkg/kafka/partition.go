package kafka

import kafkago "github.com/segmentio/kafka-go"

// Partitioner returns the function that gives the partition, of so many, that records with a key go
// to, as Java's default partitioner chooses it.
func Partitioner(partitions int) func(key string) int {
	all := make([]int, partitions)
	for i := range all {
		all[i] = i
	}
	return func(key string) int {
		return murmur2.Balance(kafkago.Message{Key: []byte(key)}, all...)
	}
}
