package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/suanpan/suanpan/pkg/kafka"
	embedded "github.com/suanpan/suanpan/services/embedded/kafka"
)

// certificate makes a certificate for 127.0.0.1 that signs itself, and returns it with the path of
// a PEM file of it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

func TestOpen_provesWhoItIs(t *testing.T) {
	own, ca := certificate(t)
	_, otherCA := certificate(t)
	server := embedded.Config{
		DataDir: t.TempDir(), Listen: "127.0.0.1:0",
		TLS:   &tls.Config{Certificates: []tls.Certificate{own}},
		Users: map[string]string{"rater": "old"},
	}
	// The users of a broker are those of its configuration, not those of its last run.
	runEmbedded(t, server).Close()
	server.Users["rater"] = "secret"
	running := runEmbedded(t, server)
	defer running.Close()
	encrypted := kafka.TLS{Enabled: true, CA: ca}
	rater := kafka.SASL{Mechanism: "scram-sha-512", User: "rater", Password: "secret"}

	c := open(t, broker{addr: running.Addr()}, kafka.Config{TLS: encrypted, SASL: rater})
	topic := newTopic(t, c, kafka.Topic{Partitions: 2})
	mustAppend(t, c, numbered(topic, 0, 100)...)
	_, generation := join(t, c, topic, topic)
	fetchN(t, generation, 100)

	// The embedded broker hangs up instead of saying what is wrong, so this is tried again.
	wrong := rater
	wrong.Password = "old"
	soon, cancel := context.WithTimeout(testContext(t), time.Second)
	defer cancel()
	config := kafka.Config{Brokers: []string{running.Addr()}, TLS: encrypted, SASL: wrong}
	if c, err := kafka.Open(soon, config); err == nil {
		c.Close()
		t.Error("a wrong password was accepted")
	}
	for want, config := range map[string]kafka.Config{
		"unknown authority":                    {TLS: kafka.TLS{Enabled: true, CA: otherCA}, SASL: rater},
		"plain sends the password":             {SASL: kafka.SASL{Mechanism: "plain", User: "u"}},
		"unknown mechanism \"kerberos\"":       {SASL: kafka.SASL{Mechanism: "kerberos"}},
		"a user is given but no mechanism":     {SASL: kafka.SASL{User: "u"}},
		"files are given but TLS is not":       {TLS: kafka.TLS{CA: ca}},
		"load TLS authorities: open /nowhere":  {TLS: kafka.TLS{Enabled: true, CA: "/nowhere"}},
		"load TLS client certificate: open /n": {TLS: kafka.TLS{Enabled: true, Cert: "/nowhere"}},
		"unknown compression \"lzma\"":         {Compression: "lzma"},
	} {
		config.Brokers = []string{running.Addr()}
		began := time.Now()
		bad, err := kafka.Open(testContext(t), config)
		if err == nil {
			bad.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q took %v", want, took)
		}
	}
}
