package kafka

import (
	"bytes"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// maxBatchBytes bounds a batch after decompression, so that no producer can exhaust memory.
const maxBatchBytes = 256 << 20

// compression is a compression of Kafka's record batches.
type compression = compress.Compression

func parseCompression(name string) (compression, error) {
	switch name {
	case "", "lz4":
		return compress.Lz4, nil
	case "none":
		return compress.None, nil
	case "snappy":
		return compress.Snappy, nil
	case "zstd":
		return compress.Zstd, nil
	}
	return 0, fmt.Errorf("unknown compression %q", name)
}

// appendCompressed appends src, compressed, to dst.
func appendCompressed(dst []byte, codec compression, src []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	w := codec.Codec().NewWriter(buf)
	if _, err := w.Write(src); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress batch: %w", err)
	}
	return buf.Bytes(), nil
}

// decompress returns what src holds, in a buffer of its own.
func decompress(codec compression, src []byte) ([]byte, error) {
	known := codec.Codec()
	if known == nil {
		return nil, fmt.Errorf("decompress batch: unknown compression %d", int8(codec))
	}
	r := known.NewReader(bytes.NewReader(src))
	defer r.Close()
	buf := make([]byte, 0, 8*len(src)) // what JSON comes to: a guess that seldom needs a second
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decompress batch: %w", err)
		}
		if len(buf) > maxBatchBytes {
			return nil, fmt.Errorf("decompress batch: more than %d bytes", maxBatchBytes)
		}
	}
}
