// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// buried stops the server, and fails the test unless nothing is kept of any connection, and so many were disconnected.
func (w *world) buried(connections int) {
	w.T.Helper()
	w.Stop(w.T)
	if n := w.tombstones(); n != connections {
		w.T.Errorf("%d connections were disconnected, want %d", n, connections)
	}
}

// tombstones returns how many connections were disconnected, and fails the test if something is kept of another one. The server is not
// running.
func (w *world) tombstones() (n int) {
	w.T.Helper()
	e := kit.Must[*local.Engine](w.T)(local.Open(context.WithoutCancel(w.T.Context()), local.Options{Dir: filepath.Join(w.DataDir, "store")}))
	defer e.Close()
	err := custody.New(e, &custody.Keys{}).Owners(w.T.Context(), func(uid types.UID, gone bool) error {
		if n++; !gone {
			w.T.Errorf("tokens of connection %s are still kept", uid)
		}
		return nil
	})
	if err != nil {
		w.T.Error(err)
	}
	return n
}

// held has requests to a path wait. entered receives each of them, and leave lets all go on to the provider.
func (w *world) held(path string) (entered chan *http.Request, leave func()) {
	entered, left := make(chan *http.Request, 16), make(chan struct{})
	w.provider.Answers(path, func(_ http.ResponseWriter, r *http.Request) bool {
		entered <- r
		<-left
		return false
	})
	leave = sync.OnceFunc(func() {
		w.provider.Answers(path, nil)
		close(left)
	})
	w.T.Cleanup(leave) // a provider waits for its requests when it ends
	return entered, leave
}

// Somebody disconnects while the provider is exchanging the code: the answer that comes afterwards is not kept.
func TestDisconnectWhileExchanging(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, refresh := w.granted(ann)
	again := w.connect(ann, "")
	entered, leave := w.held("/token")
	address := w.provider.Consent(t, again.AuthorizeURL)
	done := make(chan *url.URL)
	go func() { done <- w.back(address) }()
	<-entered
	if d := cmp.Diff([]string{refresh}, w.disconnect(ann, linked.Name)); d != "" {
		t.Errorf("revoked (-want +got):\n%s", d)
	}
	leave()
	if to := <-done; to.Query().Get("reason") != "disconnected" || to.Fragment != "" {
		t.Errorf("the consent leads to %s", to)
	}
	w.refused(address, "disconnected")
	ann.Get("/api/v1/connections/"+linked.Name).Problem(t, http.StatusNotFound)
	// The next connection has the name of the one before, and nothing else of it.
	next, second := w.granted(ann)
	if next.Name != linked.Name || w.get(next.Name).Status.GrantSequence != 1 {
		t.Errorf("connected anew: %+v", next)
	}
	if d := cmp.Diff([]string{second}, w.disconnect(ann, next.Name)); d != "" {
		t.Errorf("revoked (-want +got):\n%s", d)
	}
	w.buried(2)
}

// Somebody completes a consent and disconnects at the same time: whichever was first, the tokens are revoked if they were committed.
func TestDisconnectWhileCompleting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	const rounds = 12
	for range rounds {
		begun := w.connect(ann, "")
		completion, refresh := w.consented(begun.AuthorizeURL)
		before := len(w.provider.Revoked())
		var completed, deleted host.Answer
		var both sync.WaitGroup
		both.Go(func() { completed = w.complete(ann, begun.Connection.Name, completion) })
		both.Go(func() { deleted = ann.Do(http.MethodDelete, "/api/v1/connections/"+begun.Connection.Name, "") })
		both.Wait()
		deleted.Want(t, http.StatusNoContent)
		w.gone(ann, begun.Connection.Name)
		got := w.provider.Revoked()[before:]
		switch completed.Code {
		case http.StatusOK:
			if !slices.Equal(got, []string{refresh}) {
				t.Errorf("committed, and revoked: %v", got)
			}
		case http.StatusConflict, http.StatusNotFound:
			if len(got) > 0 {
				t.Errorf("not committed (%s), and revoked: %v", completed.Body, got)
			}
		default:
			t.Errorf("completed: %d %s", completed.Code, completed.Body)
		}
		if c := w.complete(ann, begun.Connection.Name, completion); c.Code != http.StatusNotFound {
			t.Errorf("completed afterwards: %d %s", c.Code, c.Body)
		}
	}
	w.buried(rounds)
}

// While the provider is revoking, nothing is begun, parked or committed, and to disconnect again changes nothing.
func TestDisconnectWhileDisconnecting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, refresh := w.granted(ann)
	path := "/api/v1/connections/" + linked.Name
	waiting := w.connect(ann, "")
	completion, unclaimed := w.consented(waiting.AuthorizeURL)
	pending := w.connect(ann, "")

	entered, leave := w.held("/revoke")
	ann.Do(http.MethodDelete, path, "").Want(t, http.StatusNoContent)
	r := <-entered
	if r.PostFormValue("token") != refresh || r.PostFormValue("token_type_hint") != "refresh_token" {
		t.Errorf("revokes %v", r.PostForm)
	}
	if c := w.get(linked.Name); c.DeletionTimestamp == nil || len(c.Finalizers) == 0 {
		t.Errorf("while the provider is revoking: %+v", c.ObjectMeta)
	}
	if got := host.Decode[row](t, ann.Get(path).Want(t, http.StatusOK)); got.Ready {
		t.Errorf("it counts as usable: %+v", got)
	}
	ann.Do(http.MethodDelete, path, "").Want(t, http.StatusNoContent)
	w.complete(ann, linked.Name, completion).Problem(t, http.StatusConflict, "disconnected")
	ann.Post("/api/v1/connections", `{"provider":"provider"}`).Problem(t, http.StatusConflict, "being disconnected")
	ann.Post(path+"/authorize", "").Problem(t, http.StatusConflict, "being disconnected")
	w.refused(w.provider.Consent(t, pending.AuthorizeURL), "disconnected")
	leave()
	w.gone(ann, linked.Name)
	if got := slices.Compact(slices.Sorted(slices.Values(w.provider.Revoked()))); !slices.Equal(got, []string{refresh}) {
		t.Errorf("revoked %v, and %s was never claimed", got, unclaimed)
	}
	w.buried(1)
}

// A controller that does not wait for the end of a disconnection, because the provider is slow, need not ask for it again: the tokens
// are removed all the same.
func TestDisconnectOutlastsItsRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, _ := w.granted(ann)
	entered, leave := w.held("/revoke")
	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	<-entered // the controller waits for this one
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		answered <- w.API().RESTClient().Post().Namespace("team").Resource("connections").Name(linked.Name).SubResource("release").Do(ctx).Error()
	}()
	<-entered
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the request was answered: %v", err)
	}
	kit.Await(t, "the end of the tokens", func() bool { return w.counted(consents, "released") == 1 })
	leave()
	w.gone(ann, linked.Name)
	w.buried(1)
}

// A provider that cannot or does not want to revoke keeps nobody from disconnecting. It is asked once for each grant.
func TestRevocationFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	elsewhere := 0
	w.provider.Answers("/elsewhere", func(http.ResponseWriter, *http.Request) bool { elsewhere++; return false })
	answers := map[string]oauthprovider.Answer{
		"400": func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, `{"error":"unsupported_token_type"}`, http.StatusBadRequest)
			return true
		},
		"403 of a firewall": func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, "<h1>Forbidden</h1>", http.StatusForbidden)
			return true
		},
		"500": func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, "", http.StatusInternalServerError)
			return true
		},
		"redirect": func(rw http.ResponseWriter, r *http.Request) bool {
			http.Redirect(rw, r, oauthprovider.Issuer+"/elsewhere", http.StatusTemporaryRedirect)
			return true
		},
		"closed connection": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"half an answer": func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(rw, "{")
			panic(http.ErrAbortHandler)
		},
	}
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		linked, _ := w.granted(ann)
		before := w.provider.Requests("/revoke")
		w.provider.Answers("/revoke", answers[name])
		if got := w.disconnect(ann, linked.Name); len(got) > 0 {
			t.Errorf("%s: revoked %v", name, got)
		}
		if got := w.provider.Requests("/revoke") - before; got != 1 {
			t.Errorf("%s: asked %d times", name, got)
		}
	}
	w.provider.Answers("/revoke", nil)
	linked, _ := w.granted(ann)
	w.provider.Close()
	w.disconnect(ann, linked.Name)
	if failed, revoked := w.counted(revocations, "failed"), w.counted(revocations, "revoked"); failed != len(answers)+1 || revoked != 0 {
		t.Errorf("%d failed, want %d; %d revoked", failed, len(answers)+1, revoked)
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
	w.buried(len(answers) + 1)
}

// Seventeen grants are revoked, the newest first, and one that the provider does not revoke keeps none of the others.
func TestDisconnectManyGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	var want []string
	var name string
	for range 17 {
		linked, refresh := w.granted(ann)
		name, want = linked.Name, append(want, refresh)
	}
	slices.Reverse(want)
	var asked []string
	w.provider.Answers("/revoke", func(rw http.ResponseWriter, r *http.Request) bool {
		asked = append(asked, r.PostFormValue("token"))
		if len(asked)%3 != 0 {
			return false
		}
		http.Error(rw, "", http.StatusServiceUnavailable)
		return true
	})
	revoked := w.disconnect(ann, name)
	if d := cmp.Diff(want, asked); d != "" {
		t.Errorf("asked to revoke (-want +got):\n%s", d)
	}
	if failed := w.counted(revocations, "failed"); len(revoked) != 12 || failed != 5 {
		t.Errorf("%d revoked, %d failed", len(revoked), failed)
	}
	w.buried(1)
}

// touch changes a provider without a meaning, so that what waits for it looks again.
func (w *world) touch() {
	w.T.Helper()
	_, err := w.API().ConnectorProviders("team").Patch(w.T.Context(), "provider", types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
}

// awaitKept waits until a connection says that its tokens are kept, and why, and checks that nothing was revoked.
func (w *world) awaitKept(c *standalone.Client, name, why string) {
	w.T.Helper()
	kit.Await(w.T, "what keeps the connection", func() bool {
		ready := meta.FindStatusCondition(w.get(name).Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == v1alpha1.ReasonDisconnecting && strings.Contains(ready.Message, "cannot be given back yet") && strings.Contains(ready.Message, why)
	})
	if now := w.get(name); now.DeletionTimestamp == nil || now.Status.State != v1alpha1.ConnectionPending {
		w.T.Errorf("kept: %+v", now.Status)
	}
	if got := host.Decode[row](w.T, c.Get("/api/v1/connections/"+name).Want(w.T, http.StatusOK)); got.Ready || got.State != "Pending" {
		w.T.Errorf("the person sees %+v", got)
	}
	if got := w.provider.Revoked(); len(got) > 0 {
		w.T.Errorf("revoked: %v", got)
	}
}

// Tokens that cannot be revoked without the Secret of the client are kept until it is there again.
func TestDisconnectWithoutSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, refresh := w.granted(ann)
	if err := w.Kubernetes(t).CoreV1().Secrets("team").Delete(t.Context(), oauthprovider.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	w.awaitKept(ann, linked.Name, oauthprovider.Secret)
	w.Restart(t)
	ann = w.person("user-ann")
	w.awaitKept(ann, linked.Name, oauthprovider.Secret)
	w.secret()
	w.touch()
	w.gone(ann, linked.Name)
	if got := w.provider.Revoked(); !slices.Equal(got, []string{refresh}) {
		t.Errorf("revoked %v", got)
	}
	w.buried(1)
}

// So are tokens whose key is missing.
func TestDisconnectWithoutKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, refresh := w.granted(ann)
	w.Stop(t)
	file := filepath.Join(w.DataDir, "connections.key")
	if err := os.Rename(file, file+".lost"); err != nil {
		t.Fatal(err)
	}
	w.StartAgain(t)
	ann = w.person("user-ann")
	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	w.awaitKept(ann, linked.Name, "key")
	w.Stop(t)
	if err := os.Rename(file+".lost", file); err != nil {
		t.Fatal(err)
	}
	w.StartAgain(t)
	w.gone(w.person("user-ann"), linked.Name)
	if got := w.provider.Revoked(); !slices.Equal(got, []string{refresh}) {
		t.Errorf("revoked %v", got)
	}
	w.buried(1)
}

// Without the provider and the Secret of its client connections go without being revoked: there is nobody to ask.
func TestDisconnectWithoutProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob := w.person("user-ann"), w.person("user-bob")
	hers, _ := w.granted(ann)
	his, _ := w.granted(bob)
	if err := w.Kubernetes(t).CoreV1().Secrets("team").Delete(t.Context(), oauthprovider.Secret, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Ann's connection waits for the Secret already.
	ann.Do(http.MethodDelete, "/api/v1/connections/"+hers.Name, "").Want(t, http.StatusNoContent)
	w.awaitKept(ann, hers.Name, oauthprovider.Secret)
	if err := w.API().ConnectorProviders("team").Delete(t.Context(), "provider", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gone(ann, hers.Name)
	w.awaitState(his.Name, v1alpha1.ConnectionError, v1alpha1.ReasonProviderMissing)
	if got := w.disconnect(bob, his.Name); len(got) > 0 || w.provider.Requests("/revoke") > 0 {
		t.Errorf("revoked: %v", got)
	}
	w.buried(2)
}

// If only the provider is gone, the tokens are revoked all the same: custody knows where.
func TestDisconnectAfterProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann := w.person("user-ann")
	linked, refresh := w.granted(ann)
	if err := w.API().ConnectorProviders("team").Delete(t.Context(), "provider", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitState(linked.Name, v1alpha1.ConnectionError, v1alpha1.ReasonProviderMissing)
	if got := w.disconnect(ann, linked.Name); !slices.Equal(got, []string{refresh}) {
		t.Errorf("revoked %v", got)
	}
	w.buried(1)
}

// A namespace that is deleted takes its connections with it, in whatever state they are.
func TestDeletedNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ann, bob, eve := w.person("user-ann"), w.person("user-bob"), w.person("user-eve")
	w.granted(ann)
	w.connect(bob, "")
	unclaimed := w.connect(eve, "")
	completion, _ := w.consented(unclaimed.AuthorizeURL)
	entered, leave := w.held("/token")
	late := w.provider.Consent(t, w.connect(bob, "").AuthorizeURL)
	done := make(chan *url.URL)
	go func() { done <- w.back(late) }()
	<-entered
	namespaces := w.Kubernetes(t).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "the end of the namespace", func() bool {
		_, err := namespaces.Get(t.Context(), "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	leave()
	if to := <-done; to.Query().Get("reason") != "disconnected" {
		t.Errorf("the consent leads to %s", to)
	}
	if a := w.complete(eve, unclaimed.Connection.Name, completion); a.Code < 400 || a.Code >= 500 {
		t.Errorf("completed: %d %s", a.Code, a.Body)
	}
	w.buried(3)
}
