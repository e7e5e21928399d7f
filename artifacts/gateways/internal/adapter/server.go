// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Server serves the routes of the protocol.
type Server struct {
	Capabilities protocol.Capabilities
	Deliveries   *Deliveries
	Chat         Chat
	// Tokens returns the tokens that the platform may send.
	Tokens func() ([]string, error)
	Log    *slog.Logger
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ok, err := s.known(r); err != nil || !ok {
		code := http.StatusUnauthorized
		if err != nil {
			s.Log.Error("the tokens cannot be read", "err", err)
			code = http.StatusServiceUnavailable
		}
		refuse(w, code, "")
		return
	}
	method, serve := http.MethodGet, s.health
	switch r.URL.Path {
	case protocol.PathHealth:
	case protocol.PathCapabilities:
		serve = s.capabilities
	case protocol.PathDeliveries:
		method, serve = http.MethodPost, s.deliver
	default:
		refuse(w, http.StatusNotFound, "there is no such route")
		return
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		refuse(w, http.StatusMethodNotAllowed, "the route has the method "+method)
		return
	}
	serve(w, r)
}

// known reports whether a request has one of the tokens. Digests are compared, so the time says nothing about how much is right.
func (s *Server) known(r *http.Request) (bool, error) {
	tokens, err := s.Tokens()
	if err != nil {
		return false, err
	}
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	digest, right := sha256.Sum256([]byte(given)), 0
	for _, token := range tokens {
		other := sha256.Sum256([]byte(token))
		right |= subtle.ConstantTimeCompare(digest[:], other[:])
	}
	return bearer && right == 1, nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, code int, message string) {
	write(w, code, map[string]string{"message": cmp.Or(message, http.StatusText(code))})
}

// write answers with an object.
func write(w http.ResponseWriter, code int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		code, raw = http.StatusInternalServerError, []byte(`{"message":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw) // whoever hung up asks again
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if err := cmp.Or(s.Deliveries.journal.failed(), s.Chat.Ready()); err != nil {
		refuse(w, http.StatusServiceUnavailable, clip(err.Error()))
		return
	}
	write(w, http.StatusOK, protocol.Health{Status: "ok"})
}

func (s *Server) capabilities(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, s.Capabilities)
}

func (s *Server) deliver(w http.ResponseWriter, r *http.Request) {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" || r.Header.Get("Content-Encoding") != "" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json, not compressed")
		return
	}
	var d protocol.Delivery
	if err := protocol.Decode(http.MaxBytesReader(w, r.Body, protocol.MaxDeliveryBody), protocol.MaxDeliveryBody, &d); err != nil {
		code := http.StatusBadRequest
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			code = http.StatusRequestEntityTooLarge
		}
		refuse(w, code, clip(err.Error()))
		return
	}
	if err := s.check(&d); err != nil {
		refuse(w, http.StatusBadRequest, clip(err.Error()))
		return
	}
	answer, after, err := s.Deliveries.Deliver(r.Context(), &d)
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	if err != nil {
		s.Log.Error("a delivery could not be noted", "id", d.IdempotencyID, "err", err)
		refuse(w, http.StatusServiceUnavailable, "the delivery could not be noted")
		return
	}
	write(w, http.StatusOK, answer)
}

// check returns what is wrong with a delivery.
func (s *Server) check(d *protocol.Delivery) error {
	if d.ProtocolVersion != protocol.Version {
		return fmt.Errorf("protocolVersion: must be %q", protocol.Version)
	}
	for _, m := range []struct {
		name, value string
		needed      bool
		most        int
	}{
		{"deliveryId", d.DeliveryID, true, protocol.MaxID},
		{"idempotencyId", d.IdempotencyID, true, protocol.MaxIdempotencyID},
		{"originatingEventId", d.OriginatingEventID, true, protocol.MaxID},
		{"sessionRef", d.SessionRef, false, protocol.MaxID},
		{"accountId", d.AccountID, true, protocol.MaxID},
		{"contextId", d.ContextID, true, protocol.MaxID},
		{"threadId", d.ThreadID, false, protocol.MaxID},
		{"replyTarget", d.ReplyTarget, false, protocol.MaxID},
		{"text", d.Text, true, protocol.MaxText},
	} {
		if m.needed && m.value == "" {
			return fmt.Errorf("%s: is required", m.name)
		}
		if len(m.value) > m.most {
			return fmt.Errorf("%s: must have at most %d bytes", m.name, m.most)
		}
	}
	switch d.Kind {
	case protocol.KindFinal, protocol.KindError:
		return nil
	case protocol.KindInterim:
		if s.Capabilities.Capabilities.InterimMessages {
			return nil
		}
	}
	return fmt.Errorf("kind: %q is not known", d.Kind)
}

// TokenFile returns a function that reads the tokens of a file: one a line, so that two are accepted while one is replaced by the other.
func TokenFile(path string) func() ([]string, error) {
	return func() ([]string, error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a token: %w", err)
		}
		tokens := strings.Fields(string(raw))
		if len(tokens) == 0 {
			return nil, fmt.Errorf("%s has no token", path)
		}
		return tokens, nil
	}
}

// Secret returns a function that reads the first token of a file.
func Secret(path string) func() (string, error) {
	read := TokenFile(path)
	return func() (string, error) {
		tokens, err := read()
		if err != nil {
			return "", err
		}
		return tokens[0], nil
	}
}

// Line returns a function that reads a file of one line, such as a password.
func Line(path string) func() (string, error) {
	return func() (string, error) {
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read a password: %w", err)
		}
		return strings.TrimRight(string(raw), "\r\n"), nil
	}
}

// HTTPServer returns a server whose clients cannot hold it up.
func HTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}
