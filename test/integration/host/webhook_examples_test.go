// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	parse "github.com/platform-ai/platform/pkg/codehost/webhook"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const (
	// examplePrefix is a prefix that the labels of the examples have, which are all "bug".
	examplePrefix = "bu"
	// exampleHook is the number of the hook of all deliveries here.
	exampleHook = "10"
	// senders is how many deliveries are sent at a time: fewer than the door answers for one address.
	senders = 8
	// largest is the longest body that the door reads.
	largest = 25 << 20
)

// example is one delivery of GitHub's collection, or one that was made from it.
type example struct {
	event string
	body  []byte
}

// posted is a request to the door.
type posted struct {
	example
	id string
	// signatures are the values of the header that counts, and older the value of the header of SHA-1.
	signatures []string
	older      string
	// form sends the body as a form. It is signed as it is sent.
	form bool
	// chunked sends the body without its length, over HTTP/1.1.
	chunked bool
}

// media returns the type of the body.
func (p *posted) media() string {
	if p.form {
		return "application/x-www-form-urlencoded"
	}
	return "application/json"
}

func signed(body []byte) string {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// flood sends deliveries, and keeps what became of them.
type flood struct {
	*hooked
	chunks *http.Client

	mu sync.Mutex
	// rows are the deliveries that were accepted, by the names of their rows; tasks are the replies that name a task.
	rows  map[string]string
	tasks map[string][]replied
	count map[string]int
}

func newFlood(t *testing.T) *flood {
	t.Helper()
	h := newHooked(t, func(o *standalone.Options) { o.Webhook.Triggers.Prefix = examplePrefix })
	f := &flood{hooked: h, rows: map[string]string{}, tasks: map[string][]replied{}, count: map[string]int{}}
	tr, ok := h.client.HTTP.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("%T", h.client.HTTP.Transport)
	}
	one := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: tr.TLSClientConfig.RootCAs, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: senders,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2, which has no chunks
	}
	t.Cleanup(one.CloseIdleConnections)
	f.chunks = &http.Client{Transport: one}
	return f
}

// send sends a delivery, again while the door is full.
func (f *flood) send(ctx context.Context, p *posted) (r replied, err error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.client.Base+"/webhooks/github", bytes.NewReader(p.body))
		if err != nil {
			return r, err
		}
		for name, value := range map[string]string{"X-GitHub-Event": p.event, "X-GitHub-Delivery": p.id, "X-GitHub-Hook-ID": exampleHook, "Content-Type": p.media(), "X-Hub-Signature": p.older} {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		for _, s := range p.signatures {
			req.Header.Add("X-Hub-Signature-256", s)
		}
		client := f.client.HTTP
		if p.chunked {
			client, req.ContentLength, req.Body = f.chunks, -1, io.NopCloser(bytes.NewReader(p.body))
		}
		resp, err := client.Do(req)
		if err != nil {
			return r, fmt.Errorf("%s %s: %w", p.event, p.id, err)
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return r, fmt.Errorf("%s %s: %w", p.event, p.id, err)
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			f.note("full")
			select {
			case <-ctx.Done():
				return r, ctx.Err()
			case <-time.After(100 * time.Millisecond): // as the answer 429 asks for
			}
			continue
		}
		if resp.StatusCode < http.StatusMultipleChoices {
			if err := json.Unmarshal(data, &r); err != nil {
				return r, fmt.Errorf("%s %s: %s: %w", p.event, p.id, data, err)
			}
		}
		r.Code = resp.StatusCode
		f.keep(p, &r)
		return r, nil
	}
}

func (f *flood) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[what]++
}

// keep notes which rows and tasks a reply promises.
func (f *flood) keep(p *posted, r *replied) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[strings.TrimSpace(fmt.Sprintf("%d %s", r.Code, r.Status))]++
	if r.DeliveryID != "" {
		f.rows[r.DeliveryID] = p.id
	}
	if r.TaskName != "" {
		f.tasks[r.TaskName] = append(f.tasks[r.TaskName], *r)
	}
}

// all calls one for each number below n, several at a time.
func (f *flood) all(t *testing.T, n int, one func(i int) error) {
	t.Helper()
	var group sync.WaitGroup
	next, failed := make(chan int), make(chan error, n)
	for range senders {
		group.Go(func() {
			for i := range next {
				failed <- one(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	close(failed)
	wrong := 0
	for err := range failed {
		if err == nil {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Error(err)
		}
	}
	if wrong > 10 {
		t.Errorf("%d more", wrong-10)
	}
}

// collected returns the examples of github.com, each body once.
func collected(t *testing.T) []example {
	t.Helper()
	var all []struct {
		Name     string            `json:"name"`
		Examples []json.RawMessage `json:"examples"`
	}
	const file = "../../githubapi/npm/node_modules/@octokit/webhooks-examples/api.github.com/index.json"
	if err := json.Unmarshal(kit.Must[[]byte](t)(os.ReadFile(file)), &all); err != nil {
		t.Fatal(err)
	}
	var list []example
	seen := map[[sha256.Size]byte]bool{}
	for _, of := range all {
		for _, body := range of.Examples {
			if sum := sha256.Sum256(body); !seen[sum] {
				seen[sum] = true
				list = append(list, example{of.Name, body})
			}
		}
	}
	return list
}

// relabeled returns examples about issues and pull requests whose label is another one.
func relabeled(t *testing.T, all []example, action string) []example {
	t.Helper()
	var list []example
	for _, e := range all {
		if about(e.event) && bytes.Contains(e.body, []byte(`"bug"`)) && strings.HasSuffix(actionOf(t, e.body), "labeled") {
			list = append(list, example{e.event, bytes.ReplaceAll(e.body, []byte(`"bug"`), []byte(strconv.Quote(examplePrefix+action)))})
		}
	}
	return list
}

func about(event string) bool { return event == "issues" || event == "pull_request" }

func actionOf(t *testing.T, body []byte) string {
	t.Helper()
	var v struct {
		Action string `json:"action"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v.Action
}

// ruled returns the code and the status that an example of GitHub gets. Each body comes once, and all of them are well-formed.
func ruled(t *testing.T, e example) (int, string) {
	t.Helper()
	var v struct {
		Action string `json:"action"`
		Label  struct {
			Name string `json:"name"`
		} `json:"label"`
	}
	if e.event == "ping" {
		return http.StatusAccepted, "ok"
	}
	if !about(e.event) {
		return http.StatusAccepted, "ignored"
	}
	if err := json.Unmarshal(e.body, &v); err != nil {
		t.Fatal(err)
	}
	action, prefixed := strings.CutPrefix(v.Label.Name, examplePrefix)
	if v.Action != "labeled" || !prefixed || e.event == "issues" && (action == "review" || action == "update-branch") {
		return http.StatusAccepted, "ignored"
	}
	return http.StatusCreated, "created"
}

// TestWebhookExamples: each example of GitHub gets the answer that its event and its label ask for. Of ten thousand deliveries that were
// changed on the way, only those pass that have the right signature of what arrives. No other makes a row or a task.
func TestWebhookExamples(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.Clients)
	f := newFlood(t)
	examples := collected(t)
	for _, action := range []string{"implement", "review", "update-branch", "to-issues"} {
		examples = append(examples, relabeled(t, slices.Clip(examples), action)...)
	}
	created := 0
	for _, e := range examples {
		if code, _ := ruled(t, e); code == http.StatusCreated {
			created++
		}
	}
	if created < 10 {
		t.Errorf("%d examples ask for a task", created)
	}
	f.all(t, len(examples), func(i int) error {
		e := examples[i]
		code, status := ruled(t, e)
		r, err := f.send(t.Context(), &posted{example: e, id: "example-" + strconv.Itoa(i), signatures: []string{signed(e.body)}})
		if err == nil && (r.Code != code || r.Status != status) {
			err = fmt.Errorf("example %d of %s: %+v, want %d %s", i, e.event, r, code, status)
		}
		return err
	})
	t.Logf("%d examples: %v", len(examples), f.count)
	f.mutations(t, examples)
	f.long(t)
	f.settled(t)
}

// mutations sends examples that were changed on the way, and others that only look unusual.
func (f *flood) mutations(t *testing.T, examples []example) {
	t.Helper()
	const many, seed = 10_000, 20261130
	var subjects []example
	for _, e := range examples {
		if about(e.event) {
			subjects = append(subjects, e)
		}
	}
	f.all(t, many, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i))) // each has its own, so that the order does not matter
		at := random.IntN(len(subjects))
		p := &posted{example: subjects[at], id: "mutation-" + strconv.Itoa(i)}
		what, want := change(random, p, subjects[(at+1)%len(subjects)].body)
		f.note(what)
		r, err := f.send(t.Context(), p)
		if err == nil {
			err = want(&r)
		}
		if err != nil {
			return fmt.Errorf("mutation %d of seed %d, %s of %s: %w", i, uint64(seed), what, p.event, err)
		}
		return nil
	})
	if signed, bad := f.count["another body, signed"], f.count["400"]; bad < signed/20 || bad > signed*19/20 {
		t.Errorf("%d of %d bodies that were changed are malformed, so the mutations are too large or too small to say much", bad, signed)
	}
	t.Logf("%d mutations: %v", many, f.count)
}

// change changes a delivery in one way. want checks the reply.
func change(random *rand.Rand, p *posted, other []byte) (what string, want func(*replied) error) {
	right := signed(p.body)
	p.signatures = []string{right}
	switch random.IntN(13) {
	case 0, 1, 2:
		p.body = flipped(random, p.body)
		return "flipped bits", refused
	case 3:
		// What a hook sends that was made long ago.
		mac := hmac.New(sha1.New, []byte(hookSecret))
		mac.Write(p.body)
		older := "sha1=" + hex.EncodeToString(mac.Sum(nil))
		p.older, p.signatures = older, [][]string{nil, {older}}[random.IntN(2)]
		return "only SHA-1", refused
	case 4:
		p.signatures = [][]string{{right, right}, {right, signed(other)}, {signed(other), right}, {right, ""}}[random.IntN(4)]
		return "two signatures", refused
	case 5:
		digits := strings.TrimPrefix(right, "sha256=")
		p.signatures = []string{"sha256=" + digits[:random.IntN(len(digits))]}
		return "a shortened signature", refused
	case 6:
		p.signatures = []string{signed(other)}
		return "the signature of another body", refused
	case 7:
		digits := strings.TrimPrefix(right, "sha256=")
		p.signatures = []string{[]string{"", "SHA256=" + digits, digits, "sha256= " + digits, right + "00", "sha256=" + strings.Repeat("0", 64)}[random.IntN(6)]}
		return "a signature of another form", refused
	case 8:
		p.signatures = []string{"sha256=" + strings.ToUpper(strings.TrimPrefix(right, "sha256="))}
		return "a signature in upper case", passed(p)
	case 9:
		p.chunked = true
		return "chunks", passed(p)
	case 10:
		p.form, p.body = true, []byte("payload="+url.QueryEscape(string(p.body)))
		p.signatures = []string{signed(p.body)}
		return "a form", passed(p)
	default:
		p.body = mutated(random, p.body)
		p.signatures = []string{signed(p.body)}
		return "another body, signed", passed(p)
	}
}

func refused(r *replied) error {
	if r.Code != http.StatusUnauthorized || r.DeliveryID != "" {
		return fmt.Errorf("%+v", *r)
	}
	return nil
}

// passed returns the check of a delivery that is signed right: what Parse refuses is malformed, and only a label makes a task.
func passed(p *posted) func(*replied) error {
	header := http.Header{}
	header.Set("X-GitHub-Event", p.event)
	header.Set("X-GitHub-Delivery", p.id)
	header.Set("X-GitHub-Hook-ID", exampleHook)
	header.Set("Content-Type", p.media())
	e, err := parse.Parse(header, p.body)
	asks := err == nil && (e.Action == parse.LabelUpdated || e.Action == parse.Labeled && slices.ContainsFunc(e.Labels, func(l string) bool {
		return len(l) > len(examplePrefix) && strings.EqualFold(l[:len(examplePrefix)], examplePrefix)
	}))
	return func(r *replied) error {
		switch {
		case err != nil:
			if r.Code != http.StatusBadRequest || r.DeliveryID != "" {
				return fmt.Errorf("%+v, want 400, because %w", *r, err)
			}
		case r.DeliveryID == "":
			return fmt.Errorf("%+v, want a row", *r)
		case r.Code == http.StatusAccepted && r.Status == "ignored":
		case asks && (r.Code == http.StatusCreated && r.Status == "created" || r.Code == http.StatusAccepted && r.Status == "duplicate") && r.TaskName != "":
		default:
			return fmt.Errorf("%+v of %+v", *r, e)
		}
		return nil
	}
}

// flipped returns a body with other bits.
func flipped(random *rand.Rand, body []byte) []byte {
	out := bytes.Clone(body)
	for first := random.IntN(len(out)); bytes.Equal(out, body); {
		out[first] ^= byte(1 << random.IntN(8))
		for range random.IntN(4) {
			out[random.IntN(len(out))] ^= byte(1 << random.IntN(8))
		}
	}
	return out
}

// values are what members of a body become.
var values = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e400`, `9223372036854775807`, `""`, `"x"`, `"a/b"`, `"../.."`, `"a\u0000b"`, `"\ud800"`, `"a b"`, `[]`, `{}`, `[{"name":"bux"}]`, `{"name":"bux"}`,
	`{"name":"bu"}`, `{"name":"BUimplement"}`, `{"name":"bu\u0007\u202e"}`, `"labeled"`, `"label_updated"`, `"label_cleared"`, `"synchronize"`, `"https://user:word@example.com/a/b"`, `"http://[::1]/a/b"`,
}

// mutated returns a body with other bits, a shorter one, one with a member twice, or one with other values of members.
func mutated(random *rand.Rand, body []byte) []byte {
	switch random.IntN(8) {
	case 0:
		return flipped(random, body)
	case 1:
		return bytes.Clone(body[:random.IntN(len(body))])
	case 2:
		return append([]byte(`{"action":"labeled",`), bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{"))...)
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		return body // no example is that
	}
	for range 1 + random.IntN(3) {
		in := v
		for {
			names := make([]string, 0, len(in))
			for name := range in {
				names = append(names, name)
			}
			if len(names) == 0 {
				break
			}
			slices.Sort(names) // maps have another order each time
			name := names[random.IntN(len(names))]
			if below, ok := in[name].(map[string]any); ok && random.IntN(4) > 0 {
				in = below
				continue
			}
			in[name] = json.RawMessage(values[random.IntN(len(values))])
			break
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return out
}

// long sends bodies about as long as the door reads them.
func (f *flood) long(t *testing.T) {
	t.Helper()
	body := bytes.Repeat([]byte{' '}, largest+1)
	for name, c := range map[string]struct {
		length  int
		chunked bool
		want    int
	}{
		"the longest body": {largest, false, http.StatusAccepted}, "the longest body in chunks": {largest, true, http.StatusAccepted},
		"a longer body": {largest + 1, false, http.StatusRequestEntityTooLarge}, "a longer body in chunks": {largest + 1, true, http.StatusRequestEntityTooLarge},
	} {
		p := &posted{example: example{"push", body[:c.length]}, id: strings.ReplaceAll(name, " ", "-"), chunked: c.chunked}
		p.signatures = []string{signed(p.body)}
		if r, err := f.send(t.Context(), p); err != nil || r.Code != c.want {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// settled compares what is stored with what was answered.
func (f *flood) settled(t *testing.T) {
	t.Helper()
	for name, replies := range f.tasks {
		created := 0
		for i := range replies {
			if replies[i].Code == http.StatusCreated {
				created++
			}
		}
		if created != 1 {
			t.Errorf("%d of %d replies say that they made the task %s", created, len(replies), name)
		}
	}
	tasks := 0
	err := pages(func(o metav1.ListOptions) (string, error) {
		l, err := f.Tasks().List(t.Context(), o)
		if err != nil {
			return "", err
		}
		for i := range l.Items {
			tasks++
			if f.tasks[l.Items[i].Name] == nil {
				t.Errorf("no delivery made the task %s", l.Items[i].Name)
			}
		}
		return l.Continue, nil
	})
	if err != nil || tasks != len(f.tasks) {
		t.Errorf("%d tasks, want %d: %v", tasks, len(f.tasks), err)
	}
	rows := 0
	err = pages(func(o metav1.ListOptions) (string, error) {
		l, err := f.API().CodeHostDeliveries("default").List(t.Context(), o)
		if err != nil {
			return "", err
		}
		for i := range l.Items {
			d := &l.Items[i]
			rows++
			if f.rows[d.Name] != d.Spec.DeliveryID {
				t.Errorf("the row %s of the delivery %s was not answered", d.Name, d.Spec.DeliveryID)
			}
			switch d.Status.State {
			case v1alpha1.DeliveryProcessed, v1alpha1.DeliveryDuplicate, v1alpha1.DeliveryIgnored:
			default:
				t.Errorf("the delivery %s is %s: %s", d.Spec.DeliveryID, d.Status.State, d.Status.Message)
			}
		}
		return l.Continue, nil
	})
	if err != nil || rows != len(f.rows) {
		t.Errorf("%d rows, want %d: %v", rows, len(f.rows), err)
	}
	t.Logf("%d tasks, %d rows", tasks, rows)
}

// pages calls list for each page.
func pages(list func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: 500}
	for range 1000 {
		next, err := list(o)
		if err != nil || next == "" {
			return err
		}
		o.Continue = next
	}
	return errors.New("the list does not end")
}
