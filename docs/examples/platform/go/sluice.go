package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "example.com/platform/gatewayv1"
)

const (
	messageLimit = 64 << 20
	attempts     = 5
)

// Identity is the certificate that a service proves itself by. Its files may be renewed as the process runs:
// each new connection reads them again.
type Identity struct{ Certificate, Key, CA, ServiceConfig string }

// Dial opens a channel; dns:///name:port takes turns over all replicas behind a name.
func (identity Identity) Dial(address string) (*grpc.ClientConn, error) {
	authority, err := os.ReadFile(identity.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", identity.CA)
	}
	// Retries, balancing and default deadlines, as the services expect them of their callers.
	serviceConfig, err := os.ReadFile(identity.ServiceConfig)
	if err != nil {
		return nil, err
	}
	transport := credentials.NewTLS(&tls.Config{
		RootCAs:    roots,
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(identity.Certificate, identity.Key)
			return &certificate, err
		},
	})
	return grpc.NewClient(address,
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(string(serviceConfig)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageLimit)),
		grpc.WithUnaryInterceptor(explained),
	)
}

// Grants resolves a table for each service that is called, anew before a grant ends, after a minute at most.
type Grants struct {
	catalog pb.CatalogClient
	request *pb.ResolveRequest
	held    map[pb.Audience]*pb.ResolveResponse
}

// NewGrants is about one table; with a recipient, it acts for it, which takes the permission actForRecipients.
func NewGrants(catalog pb.CatalogClient, table, recipient string) (*Grants, error) {
	names := strings.Split(table, ".")
	if len(names) != 3 {
		return nil, fmt.Errorf("name a table as share.schema.table, not %q", table)
	}
	request := &pb.ResolveRequest{Share: names[0], Schema: names[1], Table: names[2]}
	if recipient != "" {
		request.Caller = &pb.Caller{Presented: &pb.Caller_Recipient{Recipient: recipient}}
	}
	return &Grants{catalog: catalog, request: request, held: map[pb.Audience]*pb.ResolveResponse{}}, nil
}

// For returns what to put into a request to a service.
func (grants *Grants) For(ctx context.Context, audience pb.Audience) (string, error) {
	resolved := grants.held[audience]
	if resolved == nil || time.Until(time.UnixMilli(resolved.ExpiresAtMs)) < 10*time.Second {
		grants.request.Audiences = []pb.Audience{audience}
		fresh, err := grants.catalog.Resolve(ctx, grants.request)
		if err != nil {
			return "", err
		}
		resolved, grants.held[audience] = fresh, fresh
	}
	return resolved.Grants[0], nil
}

// Patiently makes a call, with a deadline, again whenever the answer says how long to wait.
func Patiently[Answer any](call func(context.Context) (Answer, error)) (Answer, error) {
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		answer, err := call(ctx)
		cancel()
		var failure *Failure
		if attempt == attempts || !errors.As(err, &failure) || failure.RetryAfter == 0 {
			return answer, err
		}
		time.Sleep(failure.RetryAfter)
	}
}

// Failure is a call's status with what the service says beside it.
type Failure struct {
	Status     *status.Status
	Code       string
	RetryAfter time.Duration
}

// Error says what went wrong, for people; programs go by the status and the code.
func (failure *Failure) Error() string {
	if failure.Code == "" {
		return fmt.Sprintf("the service was not reached: %s", failure.Status.Code())
	}
	return fmt.Sprintf("%s (%s): %s", failure.Status.Code(), failure.Code, failure.Status.Message())
}

// NewFailure reads the trailing metadata of a call that failed.
func NewFailure(err error, trailer metadata.MD) *Failure {
	failure := &Failure{Status: status.Convert(err), Code: first(trailer, "sluice-error-code")}
	if wait, err := strconv.Atoi(first(trailer, "sluice-retry-after-ms")); err == nil {
		failure.RetryAfter = time.Duration(wait) * time.Millisecond
	}
	return failure
}

// explained makes a Failure of every status that is not OK.
func explained(
	ctx context.Context, method string, request, answer any, connection *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	var trailer metadata.MD
	err := invoke(ctx, method, request, answer, connection, append(options, grpc.Trailer(&trailer))...)
	if err != nil {
		return NewFailure(err, trailer)
	}
	return nil
}

func first(trailer metadata.MD, name string) string {
	if values := trailer.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}
