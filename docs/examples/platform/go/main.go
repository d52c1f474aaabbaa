// Command platform reads the files of a table, or gets a credential for its directory, as a platform service.
//
//	go run . -catalog HOST:PORT -snapshot HOST:PORT -presign HOST:PORT \
//	    -certificate tls.crt -key tls.key -ca ca.crt share.schema.table
//
// With -vending HOST:PORT it gets a credential instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	pb "example.com/platform/gatewayv1"
)

const (
	callTimeout   = 10 * time.Second
	streamTimeout = 10 * time.Minute
)

func main() {
	var identity Identity
	addresses := map[string]*string{}
	for _, service := range []string{"catalog", "snapshot", "presign", "vending"} {
		addresses[service] = flag.String(service, "", "address of the service")
	}
	flag.StringVar(&identity.Certificate, "certificate", "", "PEM file")
	flag.StringVar(&identity.Key, "key", "", "PEM file")
	flag.StringVar(&identity.CA, "ca", "", "PEM file")
	flag.StringVar(&identity.ServiceConfig, "service-config", "../service-config.json", "JSON file")
	recipient := flag.String("recipient", "", "act for a recipient")
	flag.Parse()

	if err := run(identity, addresses, *recipient, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(identity Identity, addresses map[string]*string, recipient, table string) error {
	catalog, err := identity.Dial(*addresses["catalog"])
	if err != nil {
		return err
	}
	defer catalog.Close()
	grants, err := NewGrants(pb.NewCatalogClient(catalog), table, recipient)
	if err != nil {
		return err
	}
	if *addresses["vending"] != "" {
		return getCredential(identity, *addresses["vending"], grants)
	}
	return readFiles(identity, *addresses["snapshot"], *addresses["presign"], grants)
}

// getCredential says what was issued; the secret itself is not printed.
func getCredential(identity Identity, address string, grants *Grants) error {
	connection, err := identity.Dial(address)
	if err != nil {
		return err
	}
	defer connection.Close()
	vending := pb.NewVendingClient(connection)
	issued, err := Patiently(func(ctx context.Context) (*pb.IssueResponse, error) {
		grant, err := grants.For(ctx, pb.Audience_AUDIENCE_VENDING)
		if err != nil {
			return nil, err
		}
		return vending.Issue(ctx, &pb.IssueRequest{Grant: grant})
	})
	if err != nil {
		return err
	}
	fmt.Printf("credential %s opens %s until %s\n",
		issued.CredentialId, issued.Location, time.UnixMilli(issued.ExpiresAtMs).UTC().Format(time.RFC3339))
	return nil
}

// readFiles prints a URL for each file of the table's latest version.
func readFiles(identity Identity, snapshotAddress, presignAddress string, grants *Grants) error {
	snapshotConnection, err := identity.Dial(snapshotAddress)
	if err != nil {
		return err
	}
	defer snapshotConnection.Close()
	presignConnection, err := identity.Dial(presignAddress)
	if err != nil {
		return err
	}
	defer presignConnection.Close()

	ctx, cancel := context.WithTimeout(context.Background(), streamTimeout)
	defer cancel()
	snapshot := pb.NewSnapshotClient(snapshotConnection)
	opened, err := Patiently(func(resolving context.Context) (*pages, error) {
		grant, err := grants.For(resolving, pb.Audience_AUDIENCE_SNAPSHOT)
		if err != nil {
			return nil, err
		}
		return openPages(ctx, snapshot, grant)
	})
	if err != nil {
		return err
	}
	return printPages(opened, pb.NewPresignClient(presignConnection), grants)
}

// pages is a stream with its first message, in place of which it would have been refused.
type pages struct {
	stream pb.Snapshot_QueryClient
	first  *pb.QueryResponse
}

func openPages(ctx context.Context, snapshot pb.SnapshotClient, grant string) (*pages, error) {
	stream, err := snapshot.Query(ctx, &pb.QueryRequest{Grant: grant})
	if err != nil {
		return nil, err
	}
	first, err := stream.Recv()
	if err != nil {
		return nil, NewFailure(err, stream.Trailer())
	}
	return &pages{stream, first}, nil
}

func printPages(opened *pages, presign pb.PresignClient, grants *Grants) error {
	whole := false
	message, err := opened.first, error(nil)
	for ; ; message, err = opened.stream.Recv() {
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return NewFailure(err, opened.stream.Trailer())
		}
		for _, group := range message.GetPage().GetGroups() {
			if err := printURLs(presign, grants, group); err != nil {
				return err
			}
		}
		whole = message.GetEnd() != nil
	}
	if !whole {
		return errors.New("the answer is not whole")
	}
	return nil
}

func printURLs(presign pb.PresignClient, grants *Grants, group *pb.PathGroup) error {
	signed, err := Patiently(func(ctx context.Context) (*pb.SignResponse, error) {
		grant, err := grants.For(ctx, pb.Audience_AUDIENCE_PRESIGN)
		if err != nil {
			return nil, err
		}
		return presign.Sign(ctx, &pb.SignRequest{
			Grant: grant, Location: group.Location, Paths: group.Paths, IsSegment: group.IsSegment,
		})
	})
	if err != nil {
		return err
	}
	paths, signatures := strings.Split(string(group.Paths), "\n"), strings.Split(string(signed.Signatures), "\n")
	if len(paths) != len(signatures) {
		return fmt.Errorf("%d signatures for %d paths", len(signatures), len(paths))
	}
	for number, path := range paths {
		fmt.Println(signed.Origin + path + "?" + signed.Query + signatures[number])
	}
	return nil
}
