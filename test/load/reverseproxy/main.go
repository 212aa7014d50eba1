package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"

	"github.com/benchproxy/benchproxy/test/load/reverseproxy/streaming"
)

func main() {
	upstream := flag.String("upstream", "", "`URL` of the engine")
	flag.Parse()
	to, err := url.Parse(*upstream)
	if err != nil || to.Host == "" {
		log.Fatalf("reverseproxy: -upstream %q is not a URL", *upstream)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal("reverseproxy: ", err)
	}
	fmt.Printf("http://%s\n", ln.Addr())
	log.Fatal(http.Serve(ln, streaming.New(to)))
}
