// franz-go creates a topic, sees it, is refused another one, and deletes it. The argument is JSON:
// address, topic, forbidden, ca, and either cert or user and password. What it was refused with is
// printed.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type wanted struct {
	Address, Topic, Forbidden, Ca, Cert, User, Password string
}

func main() {
	var it wanted
	check(json.Unmarshal([]byte(os.Args[1]), &it))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(options(it)...)
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 2, 3, nil, it.Topic)
	check(err)
	for seen := false; !seen; {
		topics, err := admin.ListTopics(ctx)
		check(err)
		seen = topics.Has(it.Topic)
	}
	answer, err := admin.CreateTopic(ctx, 1, 1, nil, it.Forbidden)
	fmt.Println(err, answer.ErrMessage)
	_, err = admin.DeleteTopic(ctx, it.Topic)
	check(err)
}

func options(it wanted) []kgo.Opt {
	authority, err := os.ReadFile(it.Ca)
	check(err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if it.Cert != "" {
		certificate, err := tls.LoadX509KeyPair(it.Cert, it.Cert)
		check(err)
		config.Certificates = []tls.Certificate{certificate}
	}
	found := []kgo.Opt{kgo.SeedBrokers(it.Address), kgo.DialTLSConfig(config), kgo.RetryTimeout(10 * time.Second)}
	if it.User != "" {
		found = append(found, kgo.SASL(scram.Auth{User: it.User, Pass: it.Password}.AsSha512Mechanism()))
	}
	return found
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
