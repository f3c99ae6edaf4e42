// franz-go creates a topic, sees it, is refused another one, and deletes it. The argument is JSON:
// address, topic, forbidden, perhaps ca, and either cert or user, password and mechanism. What it was
// refused with is printed. With a group it also produces records, with transactions as well, and
// consumes them.
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
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type wanted struct {
	Address, Topic, Forbidden, Ca, Cert, User, Password, Mechanism, Group string
	Replicas                                                              int16
}

const records = 40

func main() {
	it := wanted{Replicas: 3}
	check(json.Unmarshal([]byte(os.Args[1]), &it))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(options(it)...)
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(ctx, 2, it.Replicas, nil, it.Topic)
	check(err)
	for seen := false; !seen; {
		topics, err := admin.ListTopics(ctx)
		check(err)
		seen = topics.Has(it.Topic)
	}
	answer, err := admin.CreateTopic(ctx, 1, 1, nil, it.Forbidden)
	fmt.Println("refused =", err, answer.ErrMessage)
	if it.Group != "" {
		produce(ctx, it)
		consume(ctx, it)
	}
	_, err = admin.DeleteTopic(ctx, it.Topic)
	check(err)
}

// produce sends half of the records in a transaction.
func produce(ctx context.Context, it wanted) {
	client, err := kgo.NewClient(append(options(it), kgo.TransactionalID(it.Group))...)
	check(err)
	defer client.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		check(client.BeginTransaction())
		for number := 0; number < records; number++ {
			record := &kgo.Record{Topic: it.Topic, Value: []byte(fmt.Sprintf("%v %d", end, number))}
			check(client.ProduceSync(ctx, record).FirstErr())
		}
		check(client.EndTransaction(ctx, end))
	}
	fmt.Println("produce = done")
}

// consume reads what was committed, in a group.
func consume(ctx context.Context, it wanted) {
	more := []kgo.Opt{kgo.ConsumerGroup(it.Group), kgo.ConsumeTopics(it.Topic), kgo.DisableAutoCommit()}
	more = append(more, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	more = append(more, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	client, err := kgo.NewClient(append(options(it), more...)...)
	check(err)
	defer client.Close()
	seen := map[string]bool{}
	for len(seen) < records {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { seen[string(record.Value)] = true })
	}
	check(client.CommitUncommittedOffsets(ctx))
	fmt.Println("consume =", len(seen))
}

func options(it wanted) []kgo.Opt {
	found := []kgo.Opt{kgo.SeedBrokers(it.Address), kgo.RetryTimeout(10 * time.Second)}
	if it.Ca != "" {
		found = append(found, kgo.DialTLSConfig(encryption(it)))
	}
	if it.Mechanism == "plain" {
		found = append(found, kgo.SASL(plain.Auth{User: it.User, Pass: it.Password}.AsMechanism()))
	} else if it.User != "" {
		found = append(found, kgo.SASL(scram.Auth{User: it.User, Pass: it.Password}.AsSha512Mechanism()))
	}
	return found
}

func encryption(it wanted) *tls.Config {
	authority, err := os.ReadFile(it.Ca)
	check(err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if it.Cert != "" {
		certificate, err := tls.LoadX509KeyPair(it.Cert, it.Cert)
		check(err)
		config.Certificates = []tls.Certificate{certificate}
	}
	return config
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
