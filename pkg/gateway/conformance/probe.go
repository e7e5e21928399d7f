// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// answerTimeout is how long the platform waits for an answer.
const answerTimeout = 15 * time.Second

// probe asks the adapter.
type probe struct {
	o      Options
	client *http.Client
	caps   protocol.Capabilities
	// first is the delivery of D1 and its answer.
	first  protocol.Delivery
	answer protocol.Answer

	mu                        sync.Mutex
	redirected, large, leaked string // which request was answered so first
}

func newProbe(o Options) *probe {
	o.Patience = cmp.Or(o.Patience, 2*time.Minute)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.Timeout, client.Jar = 0, nil
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &probe{o: o, client: &client}
}

// request is one request to the adapter.
type request struct {
	method, path string
	// authorization is the header; empty means the right one, and none that there is none.
	authorization string
	mediaType     string
	encoding      string
	body          io.Reader
	length        int64 // of a body whose type does not tell its length
}

// none says that a request has no authorization.
const none = "-"

// response is what the adapter answered.
type response struct {
	code      int
	mediaType string
	body      []byte
}

// ask sends one request, and notes what no answer may have. An error says that there was no answer.
func (p *probe) ask(ctx context.Context, r request) (*response, error) {
	at, err := url.Parse(p.o.URL)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is not the address of an adapter", p.o.URL)
	}
	ctx, stop := context.WithTimeout(ctx, answerTimeout)
	defer stop()
	what := r.method + " " + r.path
	req, err := http.NewRequestWithContext(ctx, r.method, at.JoinPath(r.path).String(), r.body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if r.length > 0 {
		req.ContentLength = r.length
	}
	for header, value := range map[string]string{
		"Authorization": cmp.Or(r.authorization, "Bearer "+p.o.Token), "Content-Type": r.mediaType, "Content-Encoding": r.encoding, "Accept": "application/json",
	} {
		if value != "" && value != none {
			req.Header.Set(header, value)
		}
	}
	res, err := p.client.Do(req)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("%s was not answered within %v", what, answerTimeout)
		}
		return nil, fmt.Errorf("%s was not answered: %w", what, err)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, protocol.MaxAnswer+1))
	_ = res.Body.Close() // it was read as far as it is of interest
	p.note(what, res, body)
	if err != nil {
		return nil, fmt.Errorf("the answer to %s broke off: %w", what, err)
	}
	mediaType, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return &response{code: res.StatusCode, mediaType: strings.ToLower(strings.TrimSpace(mediaType)), body: body}, nil
}

// note keeps what no answer may have.
func (p *probe) note(what string, res *http.Response, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if res.StatusCode >= 300 && res.StatusCode < 400 && p.redirected == "" {
		p.redirected = fmt.Sprintf("%s was answered with %d", what, res.StatusCode)
	}
	if len(body) > protocol.MaxAnswer && p.large == "" {
		p.large = fmt.Sprintf("the answer to %s has more than %d bytes", what, protocol.MaxAnswer)
	}
	var head bytes.Buffer
	_ = res.Header.Write(&head) // a buffer takes all
	if p.o.Token != "" && p.leaked == "" && (bytes.Contains(body, []byte(p.o.Token)) || bytes.Contains(head.Bytes(), []byte(p.o.Token))) {
		p.leaked = "the answer to " + what + " has it"
	}
}

// read asks for a document and decodes it as strictly as the platform does.
func (p *probe) read(ctx context.Context, path string, into any) error {
	res, err := p.ask(ctx, request{method: http.MethodGet, path: path})
	switch {
	case err != nil:
		return err
	case res.code != http.StatusOK:
		return fmt.Errorf("GET %s was answered with %d: %s", path, res.code, brief(res.body))
	case res.mediaType != "application/json":
		return fmt.Errorf("GET %s was answered with the media type %q", path, res.mediaType)
	case len(res.body) > protocol.MaxAnswer:
		return fmt.Errorf("the answer to GET %s has more than %d bytes", path, protocol.MaxAnswer)
	}
	if err := protocol.Unmarshal(res.body, into); err != nil {
		return fmt.Errorf("GET %s was answered with %s, which cannot be read: %w", path, brief(res.body), err)
	}
	return nil
}

// brief returns the beginning of a body.
func brief(body []byte) string {
	const most = 200
	if len(body) > most {
		return fmt.Sprintf("%q …", body[:most])
	}
	return fmt.Sprintf("%q", body)
}

// suffix makes ids that nobody else uses.
func suffix() string { return strings.ToLower(rand.Text()[:20]) }

// delivery makes a delivery that nobody made before, and the marker that its text has.
func (p *probe) delivery(purpose string) (protocol.Delivery, string) {
	marker := suffix()
	return protocol.Delivery{
		ProtocolVersion: protocol.Version, DeliveryID: "gdl-kit-" + marker, IdempotencyID: "gdl-kit-" + marker, OriginatingEventID: "gev-kit-" + marker,
		TaskRef: protocol.TaskRef{Namespace: "conformance", Name: "gw-" + marker}, SessionRef: "gateway-session-conformance", Kind: protocol.KindFinal,
		AccountID: p.o.AccountID, ContextID: p.o.ContextID, ThreadID: p.o.ThreadID, ReplyTarget: p.o.ReplyTarget,
		Text: fmt.Sprintf("[conformance %s] %s", marker, purpose),
	}, marker
}

// marker returns the marker in a text that the kit made.
func marker(d protocol.Delivery) string {
	_, after, _ := strings.Cut(d.Text, "[conformance ")
	mark, _, _ := strings.Cut(after, "]")
	return mark
}

// post returns the request of a delivery.
func post(d protocol.Delivery) (request, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return request{}, fmt.Errorf("encode a delivery: %w", err)
	}
	return request{method: http.MethodPost, path: protocol.PathDeliveries, mediaType: "application/json", body: bytes.NewReader(raw)}, nil
}

// once sends a delivery one time. The answer is nil if the platform would repeat the delivery, and then the error says why. final says that
// an error would not be repeated.
func (p *probe) once(ctx context.Context, d protocol.Delivery) (answer *protocol.Answer, final bool, err error) {
	r, err := post(d)
	if err != nil {
		return nil, true, err
	}
	res, err := p.ask(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if res.code < 200 || res.code > 299 {
		return nil, !retryable(res.code), fmt.Errorf("a delivery was answered with %d: %s", res.code, brief(res.body))
	}
	answer = &protocol.Answer{}
	if len(res.body) > protocol.MaxAnswer {
		return nil, false, fmt.Errorf("the answer to a delivery has more than %d bytes", protocol.MaxAnswer)
	}
	if err := protocol.Unmarshal(res.body, answer); err != nil {
		return nil, false, fmt.Errorf("a delivery was answered with %s, which cannot be read: %w", brief(res.body), err)
	}
	if err := answer.Check(); err != nil {
		return nil, false, fmt.Errorf("a delivery was answered with %s: %w", brief(res.body), err)
	}
	if answer.Status == protocol.RetryableError {
		return nil, false, fmt.Errorf("a delivery was answered with %s: %s", answer.Status, answer.Message)
	}
	return answer, true, nil
}

// retryable reports whether the platform repeats what is answered so.
func retryable(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return code >= 500
}

// deliver sends a delivery until there is an outcome, or patience ends.
func (p *probe) deliver(ctx context.Context, d protocol.Delivery) (*protocol.Answer, error) {
	until := p.o.Clock.Now().Add(p.o.Patience)
	for {
		answer, final, err := p.once(ctx, d)
		if err == nil {
			return answer, nil
		}
		if final || !p.o.Clock.Now().Before(until) || !p.wait(ctx, time.Second) {
			return nil, err
		}
	}
}

// delivered is deliver for what must be posted.
func (p *probe) delivered(ctx context.Context, d protocol.Delivery) (*protocol.Answer, error) {
	answer, err := p.deliver(ctx, d)
	if err != nil {
		return nil, err
	}
	if answer.Status != protocol.Delivered {
		return nil, fmt.Errorf("a delivery was answered with %s: %s", answer.Status, answer.Message)
	}
	return answer, nil
}

// again sends a delivery that has its outcome, and compares.
func (p *probe) again(ctx context.Context, d protocol.Delivery, first protocol.Answer) error {
	answer, err := p.deliver(ctx, d)
	if err != nil {
		return err
	}
	return same(first, *answer)
}

// same compares two answers. The message is for people and may differ.
func same(first, later protocol.Answer) error {
	if later.Status != first.Status || later.ProviderMessageID != first.ProviderMessageID {
		return fmt.Errorf("the first answer was %s with the providerMessageId %q, a later one %s with %q", first.Status, first.ProviderMessageID, later.Status, later.ProviderMessageID)
	}
	return nil
}

// posted checks how often a marker is in the chat, if that can be seen.
func (p *probe) posted(ctx context.Context, marker string, least, most int) error {
	if p.o.Count == nil {
		return nil
	}
	n, err := p.o.Count(ctx, marker)
	if err != nil {
		return fmt.Errorf("the messages of the chat could not be counted: %w", err)
	}
	if n < least || n > most {
		return fmt.Errorf("the text is in the chat %d times", n)
	}
	return nil
}

// refused sends a body and expects that it is refused for good.
func (p *probe) refused(ctx context.Context, what string, r request) error {
	res, err := p.ask(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if res.code < 400 || res.code > 499 || retryable(res.code) {
		return fmt.Errorf("%s was answered with %d: %s", what, res.code, brief(res.body))
	}
	return nil
}

// wait waits, unless the context ends.
func (p *probe) wait(ctx context.Context, d time.Duration) bool {
	t := p.o.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// restart restarts the adapter, and waits until it answers.
func (p *probe) restart(ctx context.Context) error {
	if err := p.o.Restart(ctx); err != nil {
		return fmt.Errorf("the adapter could not be restarted: %w", err)
	}
	until := p.o.Clock.Now().Add(p.o.Patience)
	for {
		var health protocol.Health
		err := p.read(ctx, protocol.PathHealth, &health)
		if err == nil && health.Status == "ok" {
			return nil
		}
		if !p.o.Clock.Now().Before(until) || !p.wait(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the adapter was not healthy after its restart: %w", err)
		}
	}
}

// begin sends a delivery in the background, and calls sent when its body was written. The result comes when it has been answered or abandon
// was called.
func (p *probe) begin(ctx context.Context, d protocol.Delivery, sent func()) (done <-chan struct{}, abandon func()) {
	ctx, abandon = context.WithCancel(ctx)
	var once sync.Once
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(sent) }})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, _, _ = p.once(ctx, d) // the repetition gets the outcome
		once.Do(sent)            // if nothing could be sent
	}()
	return finished, abandon
}
