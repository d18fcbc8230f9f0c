package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// Versions of the requests that this package encodes: the last ones before the flexible encoding,
// known to every broker since Kafka 2.4.
const (
	produceVersion     = 8
	fetchVersion       = 11
	listOffsetsVersion = 5

	maxResponseBytes = 256 << 20 // more than this is not a Kafka broker
	headerBytes      = 14        // size, API, version, correlation, length of the client's id
)

// exchange is a request to one broker whose body is encoded here, and its response. It implements
// kafka-go's messages, which lets it use kafka-go's connections.
type exchange struct {
	api     protocol.ApiKey
	version int16
	node    int32
	// packet starts with the space for a header, see newPacket. It belongs to the connection
	// until the response is there; after an error, for ever.
	packet []byte

	offered  int16 // the version that broker and kafka-go agreed upon
	response []byte
}

// newPacket returns a packet without a body, in the space of buf.
func (c *Client) newPacket(buf []byte) []byte {
	var header [headerBytes]byte
	return append(append(buf[:0], header[:]...), c.config.ClientID...)
}

// roundTrip sends a packet to a node and returns the body of the answer, which is the caller's.
func (c *Client) roundTrip(ctx context.Context, x *exchange) ([]byte, error) {
	binary.BigEndian.PutUint32(x.packet[0:], uint32(len(x.packet)-4))
	binary.BigEndian.PutUint16(x.packet[4:], uint16(x.api))
	binary.BigEndian.PutUint16(x.packet[6:], uint16(x.version))
	binary.BigEndian.PutUint32(x.packet[8:], correlation)
	binary.BigEndian.PutUint16(x.packet[12:], uint16(len(c.config.ClientID)))
	m, err := c.transport.RoundTrip(ctx, c.addr, x)
	if err != nil {
		return nil, fmt.Errorf("exchange %s with broker %d: %w", x.api, x.node, err)
	}
	return m.(*exchange).response, nil
}

// correlation need not differ: a connection has one request at a time.
const correlation = 0x5ba9

// ApiKey implements protocol.Message.
func (x *exchange) ApiKey() protocol.ApiKey { return x.api }

// Broker implements protocol.BrokerMessage.
func (x *exchange) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	if b, ok := cluster.Brokers[x.node]; ok {
		return b, nil
	}
	if x.node == noNode {
		return protocol.Broker{ID: noNode}, errors.New("partition has no leader")
	}
	return protocol.Broker{ID: noNode}, fmt.Errorf("broker %d is not in the cluster", x.node)
}

// Required implements protocol.RawExchanger.
func (x *exchange) Required(versions map[protocol.ApiKey]int16) bool {
	x.offered = versions[x.api]
	return true
}

// RawExchange implements protocol.RawExchanger.
func (x *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if x.offered < x.version {
		return nil, permanent(fmt.Errorf("broker knows %s only up to version %d: "+
			"Kafka 2.4 or later is needed", x.api, x.offered))
	}
	if _, err := rw.Write(x.packet); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, unexpected(err)
	}
	size := int(int32(binary.BigEndian.Uint32(head[:]))) - 4
	if size < 0 || size > maxResponseBytes {
		return nil, fmt.Errorf("response of %d bytes", size)
	}
	if id := binary.BigEndian.Uint32(head[4:]); id != correlation {
		return nil, fmt.Errorf("response to request %d instead of %d", id, correlation)
	}
	x.response = make([]byte, size)
	if _, err := io.ReadFull(rw, x.response); err != nil {
		return nil, unexpected(err)
	}
	return x, nil
}

// unexpected turns the end of a stream into an error that says so: it never is one between a
// request and its response.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
