package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// TLS says how connections are encrypted. The server's certificate is always verified.
type TLS struct {
	Enabled bool
	CA      string // PEM file with the authorities to trust; default: those of the system
	Cert    string // PEM file with the client's certificate, optional, together with Key
	Key     string // PEM file with its private key
}

func (t TLS) load() (*tls.Config, error) {
	if !t.Enabled {
		if t != (TLS{}) {
			return nil, errors.New("load TLS: files are given but TLS is not enabled")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("load TLS authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("load TLS authorities: no certificate in %s", t.CA)
		}
	}
	if t.Cert == "" && t.Key == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("load TLS client certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// SASL says how the client proves who it is. The zero value does not.
type SASL struct {
	Mechanism string // "plain", "scram-sha-256" or "scram-sha-512"
	User      string
	Password  string
}

func (s SASL) mechanism(t TLS) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "":
		if s != (SASL{}) {
			return nil, errors.New("configure SASL: a user is given but no mechanism")
		}
		return nil, nil
	case "plain":
		if !t.Enabled {
			return nil, errors.New("configure SASL: plain sends the password, it needs TLS")
		}
		return plain.Mechanism{Username: s.User, Password: s.Password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, s.User, s.Password)
	case "scram-sha-512":
		return scram.Mechanism(scram.SHA512, s.User, s.Password)
	}
	return nil, fmt.Errorf("configure SASL: unknown mechanism %q", s.Mechanism)
}
