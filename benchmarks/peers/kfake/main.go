// kfake runs franz-go's in-memory fake cluster as a process of its own: three brokers on free ports of
// 127.0.0.1. It prints where they listen in the words `minicontroller up` uses, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	fmt.Printf("ready: bootstrap.servers=%s\n", strings.Join(cluster.ListenAddrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}
