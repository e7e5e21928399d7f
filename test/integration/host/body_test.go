// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// bodyPaths are paths that read bodies, REST and native ones.
func bodyPaths() []string {
	return []string{
		"/api/v1/tasks", "/api/v1/tasks/a/fork", "/internal/v1/events/default/task/a", "/internal/v1/results/default/a",
		"/internal/v1/artifacts/default/a/f", standalone.TasksPath, standalone.TasksPath + "/a/events", standalone.TasksPath + "/a/result", "/no/such/path",
	}
}

// dial opens a connection of HTTP/1.1 to a listener.
func dial(t *testing.T, s *standalone.Server, base string) net.Conn {
	t.Helper()
	u := kit.Must[*url.URL](t)(url.Parse(base))
	c := kit.Must[net.Conn](t)(net.Dial("tcp", u.Host))
	t.Cleanup(func() { c.Close() })
	if u.Scheme == "https" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(s.Admin.CAData)
		c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	}
	return c
}

// The server reads no byte of an unauthenticated caller's body: the answer comes when only the head was sent, on both
// listeners, whatever the head says about the body.
func TestBodiesOfStrangers(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	for _, base := range []string{s.URL, s.RESTURL} {
		for _, path := range bodyPaths() {
			if base == s.RESTURL && !strings.HasPrefix(path, "/api/v1") && !strings.HasPrefix(path, "/internal") {
				continue
			}
			for _, length := range []string{"Content-Length: 14680064\r\n", "Content-Length: 1000\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 1000\r\nExpect: 100-continue\r\n"} {
				c := dial(t, s, base)
				_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer garbage\r\nContent-Type: application/json\r\n%s\r\n", path, length)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatalf("%s%s %q: %v", base, path, length, err)
				}
				if resp.StatusCode != http.StatusUnauthorized || !resp.Close {
					t.Errorf("%s%s %q: %s, closes %v", base, path, length, resp.Status, resp.Close)
				}
				resp.Body.Close()
				c.Close()
			}
		}
	}
	// Over HTTP/2 the request stays open until it is answered.
	c := s.Stranger(t).With("Authorization", "Bearer garbage")
	body, sender := io.Pipe()
	defer sender.Close()
	req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+standalone.TasksPath, body))
	req.Header = c.Header
	resp, err := c.HTTP.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
}

// All bodies share a budget, of which a caller gets a part. A request beyond that part is told at once to retry later, and
// other callers are served.
func TestBodyBudget(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, func(o *standalone.Options) { o.BodyBudget.Quantity = resource.MustParse("32Mi") })
	s.RESTTask(t, "a")
	first, other := s.Token(t, "default", "ed", "cluster-admin"), s.Token(t, "default", "eve", "cluster-admin")
	upload := func(base, path, token string) (net.Conn, int, string) {
		t.Helper()
		c := dial(t, s, base)
		_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 10485760\r\nExpect: 100-continue\r\n\r\n", path, token)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return c, resp.StatusCode, resp.Header.Get("Retry-After")
	}
	native, rest := standalone.TasksPath+"/a/result", "/internal/v1/results/default/a"
	var held []net.Conn
	for i, step := range []struct {
		base, path, token string
		want              int
	}{
		{s.URL, native, first, 100},
		{s.RESTURL, rest, first, 100},
		{s.URL, native, first, 429},
		{s.URL, rest, first, 429},
		{s.URL, native, other, 100},
		{s.RESTURL, rest, other, 429},
	} {
		c, code, retry := upload(step.base, step.path, step.token)
		if code != step.want || step.want == 429 && retry == "" {
			t.Errorf("upload %d: %d, Retry-After %q", i, code, retry)
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Close()
	}
	c := s.Stranger(t).With("Authorization", "Bearer "+first)
	made := c.Post("/api/v1/tasks", `{"name":"b","type":"container","image":"x","command":["true"]}`)
	for made.Code == http.StatusTooManyRequests { // the server has yet to see that the connections are closed
		made = c.Post("/api/v1/tasks", `{"name":"b","type":"container","image":"x","command":["true"]}`)
	}
	made.Want(t, http.StatusCreated)
	for media, limit := range map[string]int{"application/json": 15 << 20, "application/yaml": 3 << 20} {
		a := c.With("Content-Type", media).Post(standalone.TasksPath, strings.Repeat(" ", limit+1))
		if a.Code != http.StatusRequestEntityTooLarge || !strings.Contains(a.Body, fmt.Sprintf("at most %d bytes", limit)) {
			t.Errorf("a long object, %s: %d %s", media, a.Code, a.Body)
		}
	}
}

// TestLongObjects: a request of nearly 15 MiB is accepted: by REST and natively, as a new object, a replacement and a patch.
// The object is read, listed, watched and found again after a restart.
func TestLongObjects(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "editor", "platform-editor")
	text := func(letter string) string { return strings.Repeat(letter+` word, \"quoted\" `, 14<<20/18) }
	skill := func(name, letter string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"description":"d","content":{"inline":"` + text(letter) + `"}}}`
	}
	const skills = "/apis/core.platform.ai/v1alpha1/namespaces/default/skills"
	c.Post("/api/v1/skills", skill("rest", "a")).Want(t, http.StatusCreated)
	c.Do(http.MethodPut, "/api/v1/skills/rest", skill("rest", "b")).Want(t, http.StatusOK)
	native := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Skill",` + skill("native", "c")[1:]
	send := func(method, path, media, body string) {
		t.Helper()
		req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body)))
		req.Header.Set("Content-Type", media)
		resp, err := kit.Must[*http.Client](t)(restclient.HTTPClientFor(s.Admin)).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := kit.Must[[]byte](t)(io.ReadAll(resp.Body)); resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %s %.300s", method, path, resp.Status, got)
		}
	}
	send(http.MethodPost, skills, "application/json", native)
	send(http.MethodPatch, skills+"/native", "application/merge-patch+json", `{"spec":{"content":{"inline":"`+text("d")+`"}}}`)
	api := s.Core(t).Skills("default")
	for name, letter := range map[string]string{"rest": "b", "native": "d"} {
		o, err := api.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || !strings.HasPrefix(o.Spec.Content.Inline, letter+` word, "quoted"`) || len(o.Spec.Content.Inline) < 12<<20 {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := api.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("list: %v", err)
	}
}

// TestManyValues: what costs time for each value is bounded by an error that names the bound, on every path and in every form, for
// our kinds and those of the host.
func TestManyValues(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.REST(t, "default", "editor", "platform-editor")
	labels := strings.Repeat(`"x":"y",`, 20_000) + `"z":"z"`
	const bound = "the body must have at most 20000 values (members, entries and elements), nested at most 100 deep"
	many := `{"metadata":{"name":"many"},"spec":{"description":"d","tags":[` + strings.Repeat(`"x",`, 1<<20) + `"x"]}}`
	c.Post("/api/v1/skills", many).Problem(t, http.StatusRequestEntityTooLarge, bound)
	var schema, yaml strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&schema, `"p%d":{"type":"string"},`, i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&yaml, "    l%d: v\n", i)
	}
	tool := `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Tool","metadata":{"name":"t"},"spec":{"description":"d","http":{"url":"https://example.com"},"parameters":{"type":"object","properties":{` + schema.String() + `"z":{}}}}}`
	const tasks, tools = standalone.TasksPath, "/apis/core.platform.ai/v1alpha1/namespaces/default/tools"
	for name, tt := range map[string]struct{ method, path, media, body, want string }{
		"labels":       {http.MethodPost, tasks, "application/json", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"t","labels":{` + labels + `}},"spec":{"type":"ai","prompt":"p"}}`, bound},
		"a dry run":    {http.MethodPost, tasks + "?dryRun=All", "application/json", `{"metadata":{"labels":{` + labels + `}}}`, bound},
		"a patch":      {http.MethodPatch, tasks + "/t", "application/merge-patch+json", `{"metadata":{"labels":{` + labels + `}}}`, bound},
		"an apply":     {http.MethodPatch, tasks + "/t?fieldManager=m", "application/apply-patch+yaml", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata:\n  name: t\n  labels:\n" + yaml.String(), bound},
		"another kind": {http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"t"},"data":{` + labels + `}}`, bound},
		"depth":        {http.MethodPost, tools, "application/json", `{"spec":{"parameters":` + strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 102), bound},
		"a schema":     {http.MethodPost, tools + "?dryRun=All", "application/json", tool, "spec.parameters: Invalid value: must be a JSON Schema of an object: the schema must have at most 5000 values"},
	} {
		req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), tt.method, s.URL+tt.path, strings.NewReader(tt.body)))
		req.Header.Set("Content-Type", tt.media)
		resp, err := kit.Must[*http.Client](t)(restclient.HTTPClientFor(s.Admin)).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got := kit.Must[[]byte](t)(io.ReadAll(resp.Body))
		resp.Body.Close()
		want := http.StatusRequestEntityTooLarge
		if name == "a schema" {
			want = http.StatusUnprocessableEntity
		}
		if resp.StatusCode != want || !strings.Contains(string(got), tt.want) {
			t.Errorf("%s: %s %.300s", name, resp.Status, got)
		}
	}
}

// TestLogOfStrangers: requests with credentials that nobody knows cost one line of the log per interval, however many come
// and whatever they ask for.
func TestLogOfStrangers(t *testing.T) {
	t.Parallel()
	s := kit.StartServer(t, t.TempDir())
	_, after, _ := strings.Cut(s.Output(), "REST ")
	plain, _, _ := strings.Cut(strings.TrimSpace(after), "/api/v1")
	native := kit.Must[*restclient.Config](t)(clientcmd.BuildConfigFromFlags("", s.Kubeconfig))
	c := kit.Must[*http.Client](t)(restclient.HTTPClientFor(restclient.AnonymousClientConfig(native)))
	t.Cleanup(c.CloseIdleConnections)
	for range 10 {
		for _, address := range []string{native.Host + standalone.TasksPath, native.Host + "/backup", native.Host + "/openai/v1/models", plain + "/api/v1/tasks", plain + "/anthropic/v1/messages"} {
			req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, address, nil))
			if !strings.HasSuffix(address, "/messages") {
				req.Method = http.MethodGet
			}
			req.Header.Set("Authorization", "Bearer garbage")
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s", address, resp.Status)
			}
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	// A line that does not say how many were left out before it is not of the sparse log, whose rate is tested with a clock.
	lines := 0
	for line := range strings.Lines(s.Output()) {
		if !strings.Contains(line, "Unable to authenticate") {
			continue
		}
		if lines++; !strings.Contains(line, " alsoDropped=") {
			t.Errorf("line %d is not of the sparse log: %s", lines, line)
		}
	}
	if lines == 0 {
		t.Errorf("no line for 50 requests:\n%s", s.Output())
	}
}
