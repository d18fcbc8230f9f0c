package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
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
		return g.Listener.Accept()
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
