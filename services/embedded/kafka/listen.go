package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

const defaultListen = "127.0.0.1:9092"

// gate is a listener that accepts nothing before it is opened, and tells clients an address of
// its own choice.
type gate struct {
	net.Listener
	addr   net.Addr
	opened chan struct{}
	closed chan struct{}
	once   sync.Once
}

func listen(ctx context.Context, config Config) (*gate, error) {
	address := config.Listen
	if address == "" {
		address = defaultListen
	}
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	g := &gate{
		Listener: inner, addr: inner.Addr(),
		opened: make(chan struct{}), closed: make(chan struct{}),
	}
	if config.Advertise != "" {
		g.addr = advertised(config.Advertise)
		return g, nil
	}
	if ip := inner.Addr().(*net.TCPAddr).IP; ip.IsUnspecified() {
		inner.Close()
		return nil, fmt.Errorf("listen on %s: an address to advertise is needed", address)
	}
	return g, nil
}

// open lets clients in.
func (g *gate) open() { close(g.opened) }

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case <-g.opened:
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		return &lingering{Conn: conn, closed: make(chan struct{})}, nil
	case <-g.closed:
		return nil, errors.New("listener closed")
	}
}

// Close implements net.Listener.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// Addr implements net.Listener.
func (g *gate) Addr() net.Addr { return g.addr }

// advertised is an address as clients are told it.
type advertised string

// Network implements net.Addr.
func (advertised) Network() string { return "tcp" }

// String implements net.Addr.
func (a advertised) String() string { return string(a) }

// linger is how long a connection that broke is still shown as open. It is longer than any member
// of a group waits for a rebalance.
const linger = 30 * time.Second

// lingering is a connection whose end is told later. kfake waits for the session timeout of a
// member only once it could answer its join: one that died before would stay in its group for ever,
// with partitions that nobody reads. So the join of a dead member is answered like any other.
type lingering struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
}

// Read implements net.Conn.
func (c *lingering) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	wait := time.NewTimer(linger)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-c.closed:
	}
	return n, err
}

// Close implements net.Conn.
func (c *lingering) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
