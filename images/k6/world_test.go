package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bufbuild/protocompile"
	"github.com/gorilla/websocket"
	"golang.org/x/crypto/ocsp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// world answers what scripts of others ask, under the names that they know: by HTTP and WebSocket without TLS, with
// it, and with a TLS of 2012.
type world struct {
	plain, secured, old *httptest.Server
	names               string // a configuration of k6 that leads all names here
	authority           string // a file with the certificates to be trusted
}

var hosts = []string{
	"httpbin.org", "quickpizza.grafana.com", "api.github.com", "stackoverflow.com", "echo.websocket.org", "sha256.badssl.com",
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{plain: httptest.NewServer(http.HandlerFunc(answer))}
	w.secured, w.old = httptest.NewUnstartedServer(w.plain.Config.Handler), httptest.NewUnstartedServer(w.plain.Config.Handler)
	modern, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	classic, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	w.secured.EnableHTTP2 = true
	w.secured.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, modern)}}
	w.old.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate(t, classic)}, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256},
	}
	var trusted []byte
	for _, server := range []*httptest.Server{w.secured, w.old} {
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		leaf := server.TLS.Certificates[0].Certificate[0]
		trusted = append(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf})...)
		server.StartTLS()
	}
	t.Cleanup(func() { w.plain.Close(); w.secured.Close(); w.old.Close() })
	leads := map[string]string{"localhost:8080": w.plain.Listener.Addr().String()}
	for _, host := range hosts {
		leads[host+":80"], leads[host+":443"] = w.plain.Listener.Addr().String(), w.secured.Listener.Addr().String()
	}
	leads["sha256.badssl.com:443"] = w.old.Listener.Addr().String()
	configuration, err := json.Marshal(map[string]any{"hosts": leads})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	w.names, w.authority = filepath.Join(folder, "config.json"), filepath.Join(folder, "ca.crt")
	for name, text := range map[string][]byte{w.names: configuration, w.authority: trusted} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// certificate gives one that vouches for itself, and says that nobody has revoked it.
func certificate(t *testing.T, key crypto.Signer) tls.Certificate {
	t.Helper()
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	made, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	good := ocsp.Response{Status: ocsp.Good, SerialNumber: leaf.SerialNumber, NextUpdate: leaf.NotAfter}
	staple, err := ocsp.CreateResponse(leaf, leaf, good, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key, OCSPStaple: staple}
}

// answer is that of an echo, a small shop and a few others in one.
func answer(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		echo(w, r)
		return
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "get", "post", "put", "patch", "delete":
		say(w, mirrored(r))
	case "cookies":
		if rest == "set" {
			for name, values := range r.URL.Query() {
				http.SetCookie(w, &http.Cookie{Name: name, Value: values[0], Path: "/"})
			}
			http.Redirect(w, r, "/cookies", http.StatusFound)
			return
		}
		cookies := map[string]string{}
		for _, one := range r.Cookies() {
			cookies[one.Name] = one.Value
		}
		say(w, map[string]any{"cookies": cookies})
	case "redirect":
		to := "/get"
		if left, _ := strconv.Atoi(rest); left > 1 {
			to = fmt.Sprintf("/redirect/%d", left-1)
		}
		http.Redirect(w, r, to, http.StatusFound)
	case "basic-auth":
		user, password, _ := r.BasicAuth()
		if user+"/"+password != rest {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		say(w, map[string]any{"authenticated": true, "user": user})
	case "digest-auth":
		digest(w, r, strings.TrimPrefix(rest, "auth/"))
	case "graphql":
		issue := map[string]any{"node": map[string]any{"id": "I_1", "number": 1, "title": "first"}}
		issues := map[string]any{"issues": map[string]any{"edges": []any{issue}}}
		say(w, map[string]any{"data": map[string]any{"repository": issues}})
	case "pi.php":
		_, _ = io.WriteString(w, "3.14")
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, `<html><title>A page</title><p class="description">This is a replacement of the service that was here.</p></html>`)
	}
}

func say(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}

// mirrored is what was asked.
func mirrored(r *http.Request) map[string]any {
	body, _ := io.ReadAll(r.Body)
	said := map[string]any{"args": single(r.URL.Query()), "data": string(body), "url": r.URL.String(), "headers": single(url.Values(r.Header))}
	if form, err := url.ParseQuery(string(body)); err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		said["form"] = single(form)
	}
	var parsed any
	if json.Unmarshal(body, &parsed) == nil {
		said["json"] = parsed
	}
	return said
}

// single gives values that are alone without their list.
func single(all url.Values) map[string]any {
	said := map[string]any{}
	for name, values := range all {
		said[name] = values
		if len(values) == 1 {
			said[name] = values[0]
		}
	}
	return said
}

var digestField = regexp.MustCompile(`(\w+)="?([^",]*)"?`)

// digest answers whom RFC 7616 (with MD5, as of 1999) finds to know the password.
func digest(w http.ResponseWriter, r *http.Request, credentials string) {
	user, password, _ := strings.Cut(credentials, "/")
	of := func(parts ...string) string { return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(parts, ":")))) }
	said := map[string]string{}
	for _, field := range digestField.FindAllStringSubmatch(strings.TrimPrefix(r.Header.Get("Authorization"), "Digest "), -1) {
		said[field[1]] = field[2]
	}
	who, what := of(user, "here", password), of(r.Method, r.URL.RequestURI())
	if said["response"] == "" || said["response"] != of(who, said["nonce"], said["nc"], said["cnonce"], said["qop"], what) {
		w.Header().Set("WWW-Authenticate", `Digest realm="here", nonce="once", qop="auth", opaque="no", algorithm=MD5`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	say(w, map[string]any{"authenticated": true, "user": user})
}

// echo gives back each message of a WebSocket, and a pong to a ping.
func echo(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	for {
		kind, message, err := connection.ReadMessage()
		if err != nil || connection.WriteMessage(kind, message) != nil {
			return
		}
	}
}

// speakGRPC serves every service of a file of protocol buffers, and tells who asks what they are; it gives the address.
func speakGRPC(t *testing.T, file string) string {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{filepath.Dir(file)}}}
	compiled, err := compiler.Compile(t.Context(), filepath.Base(file))
	if err != nil {
		t.Fatal(err)
	}
	spoken := &spoken{files: &protoregistry.Files{}, methods: map[string]protoreflect.MethodDescriptor{}, services: map[string]grpc.ServiceInfo{}}
	for _, one := range compiled {
		if err := spoken.files.RegisterFile(one); err != nil {
			t.Fatal(err)
		}
		for service := range one.Services().Len() {
			of := one.Services().Get(service)
			spoken.services[string(of.FullName())] = grpc.ServiceInfo{Metadata: one.Path()}
			for method := range of.Methods().Len() {
				spoken.methods[fmt.Sprintf("/%s/%s", of.FullName(), of.Methods().Get(method).Name())] = of.Methods().Get(method)
			}
		}
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(spoken.answer))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	reflectionv1.RegisterServerReflectionServer(server, reflection.NewServerV1(reflection.ServerOptions{
		Services: spoken, DescriptorResolver: spoken.files, ExtensionResolver: protoregistry.GlobalTypes,
	}))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// spoken are services that nobody has written a server for.
type spoken struct {
	files    *protoregistry.Files
	methods  map[string]protoreflect.MethodDescriptor
	services map[string]grpc.ServiceInfo
}

// GetServiceInfo is what reflection lists.
func (s *spoken) GetServiceInfo() map[string]grpc.ServiceInfo { return maps.Clone(s.services) }

// answer gives one answer to one message or to a stream of them, three to one message of a method that answers with a
// stream, and one to each where both sides do. Who asks for a status by metadata gets that one.
func (s *spoken) answer(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	method := s.methods[name]
	if method == nil {
		return status.Error(codes.Unimplemented, name)
	}
	wanted := wantedStatus(stream.Context())
	for heard := int32(1); ; heard++ {
		question := dynamicpb.NewMessage(method.Input())
		err := stream.RecvMsg(question)
		times := 1
		switch {
		case wanted != codes.OK:
			// Not before the question is there: grpc-go tells its statistics, and so k6, that a call is right when its
			// refusal overtakes what it still has to send (docs/loads.md).
			return status.Error(wanted, "as was asked for")
		case errors.Is(err, io.EOF) && method.IsStreamingServer():
			return nil
		case errors.Is(err, io.EOF):
			return stream.SendMsg(reply(method, nil, heard-1))
		case err != nil:
			return err
		case method.IsStreamingClient() && !method.IsStreamingServer():
			continue
		case method.IsStreamingServer() && !method.IsStreamingClient():
			times = 3
		}
		for range times {
			if err := stream.SendMsg(reply(method, question, heard)); err != nil {
				return err
			}
		}
		if !method.IsStreamingClient() {
			return nil
		}
	}
}

func wantedStatus(ctx context.Context) codes.Code {
	said, _ := metadata.FromIncomingContext(ctx)
	for _, text := range said.Get("x-status") {
		number, _ := strconv.Atoi(text)
		return codes.Code(number)
	}
	return codes.OK
}

// reply gives back what was asked where that is an answer. Others are filled: with what was asked where they have a
// place for it, with how many messages were heard, and with words.
func reply(method protoreflect.MethodDescriptor, question *dynamicpb.Message, heard int32) *dynamicpb.Message {
	if question != nil && method.Output().FullName() == method.Input().FullName() {
		return question
	}
	said := dynamicpb.NewMessage(method.Output())
	fields := method.Output().Fields()
	for i := range fields.Len() {
		switch field := fields.Get(i); {
		case field.IsList():
		case field.Kind() == protoreflect.StringKind:
			said.Set(field, protoreflect.ValueOfString("somewhere"))
		case field.Kind() == protoreflect.Int32Kind:
			said.Set(field, protoreflect.ValueOfInt32(heard))
		case field.Message() != nil && question != nil && field.Message().FullName() == method.Input().FullName():
			said.Set(field, protoreflect.ValueOfMessage(question))
		case field.Message() != nil:
			said.Set(field, protoreflect.ValueOfMessage(dynamicpb.NewMessage(field.Message())))
		}
	}
	return said
}
