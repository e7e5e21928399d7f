// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxBody is the maximum size of a request, in bytes. Installations accept no more.
const maxBody = 15 << 20

// copyBuffer is how much of an answer is read at a time, in bytes.
const copyBuffer = 32 << 10

// buffers has buffers of answers.
var buffers sync.Pool

var (
	// errClient means that the client has disconnected or does not read the answer.
	errClient = errors.New("the client left or does not read")
	// errBroken means that the installation's answer broke off.
	errBroken = errors.New("the answer of the installation broke off")
)

// forward sends a request to an installation, and the answer to the client as it arrives.
func (rt *Router) forward(x *exchange, to *url.URL, token string) error {
	out := (&http.Request{
		Method: x.endpoint.method, URL: to, Host: to.Host, Header: outgoing(x.r.Header, token, x.id),
	}).WithContext(x.r.Context())
	up, err := newUpload(x)
	if err != nil {
		return err
	}
	if up != nil {
		out.Body, out.ContentLength = up, x.r.ContentLength
		defer up.Close() //nolint:errcheck // it tells nothing new; the transport may still be reading; the server needs the body back
	}
	in, err := rt.transport.RoundTrip(out)
	if err != nil {
		return unanswered(x, up, err)
	}
	defer in.Body.Close() //nolint:errcheck // it was read, or is of no use any more
	if in.StatusCode < http.StatusOK || in.StatusCode >= 300 && in.StatusCode < 400 {
		return problem{code: http.StatusServiceUnavailable, message: "the installation of this namespace tries to redirect"}
	}
	answer(x.w.Header(), in.Header)
	x.w.WriteHeader(in.StatusCode)
	return relay(x.w, in.Body, in.ContentLength < 0)
}

// unanswered returns the error for a missing answer of the installation. The cause is either the client's body or the
// installation.
func unanswered(x *exchange, up *upload, err error) error {
	if up != nil {
		if p, failed := up.failure(); failed {
			return p
		}
	}
	if x.r.Context().Err() != nil {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	p := problem{code: http.StatusServiceUnavailable, message: "the installation of this namespace cannot be reached", err: err}
	if _, bad := errors.AsType[*tls.CertificateVerificationError](err); bad {
		p.message = "the certificate of this namespace's installation cannot be verified"
	}
	return p
}

// relay copies an answer. Each part of a stream, which is an answer of unknown length, is sent immediately. An answer that breaks
// off is an error.
func relay(w *writer, body io.Reader, stream bool) error {
	buf, ok := buffers.Get().(*[copyBuffer]byte)
	if !ok {
		buf = new([copyBuffer]byte)
	}
	defer buffers.Put(buf)
	if stream { // its client learns immediately that it was accepted
		if err := w.flush(); err != nil {
			return fmt.Errorf("%w: %w", errClient, err)
		}
	}
	for {
		n, err := body.Read(buf[:])
		if n > 0 {
			_, sent := w.Write(buf[:n])
			if sent == nil && stream {
				sent = w.flush()
			}
			if sent != nil {
				return fmt.Errorf("%w: %w", errClient, sent)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
}

// upload is the body of a request while it is being sent. It is bounded in size, and in time by the server's read
// timeout. net/http ends that timeout with the body, so a stream that follows may take as long as it likes.
type upload struct {
	mu     sync.Mutex // guards body and closed; held while reading, so that no read outlives Close
	body   io.ReadCloser
	closed bool

	err atomic.Pointer[error] // why the body did not arrive; not guarded, so that nobody waits for a client to send
}

// newUpload returns the body of a request, or nil if there is none.
func newUpload(x *exchange) (*upload, error) {
	if x.r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	if x.endpoint.method == http.MethodGet || x.r.Body == nil || x.r.ContentLength == 0 {
		return nil, nil
	}
	return &upload{body: http.MaxBytesReader(x.w.ResponseWriter, x.r.Body, maxBody)}, nil
}

func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := u.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		u.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Close releases the body. If the body has not ended, Close waits for a read in progress, at most as long as the
// upload may take.
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil
	}
	u.closed = true
	return u.body.Close()
}

// failure returns the error for a client that did not send its body correctly.
func (u *upload) failure() (problem, bool) {
	failed := u.err.Load()
	if failed == nil {
		return problem{}, false
	}
	if _, large := errors.AsType[*http.MaxBytesError](*failed); large {
		return tooLarge(), true
	}
	p := problem{code: http.StatusBadRequest, message: "the request did not arrive whole", err: *failed}
	if errors.Is(*failed, os.ErrDeadlineExceeded) {
		p.message = "the request did not arrive in time"
	}
	return p, true
}

func tooLarge() problem {
	return problem{code: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the request is larger than %d MiB", maxBody>>20)}
}

// cause returns the part of an error that may be logged: errors of the network, of certificates or of the API server.
// Other errors of a transport may quote what was received.
func cause(err error) error {
	if _, network := errors.AsType[net.Error](err); network {
		return err
	}
	if _, certificate := errors.AsType[*tls.CertificateVerificationError](err); certificate {
		return err
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return fmt.Errorf("the API server says %s", reason)
	}
	for _, plain := range []error{context.Canceled, io.EOF, io.ErrUnexpectedEOF, errClient, errBroken} {
		if errors.Is(err, plain) {
			return plain
		}
	}
	if p, own := errors.AsType[problem](err); own {
		return errors.New(p.message)
	}
	return fmt.Errorf("the answer is a %T, not a Status", err)
}
