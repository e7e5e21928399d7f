// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
)

// The connection is changed while its token is refreshed: both are kept.
func TestUseWhileChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.after(hour)
	entered, leave := w.held()
	done := w.begins(w.ctx, c)
	<-entered
	_, err := w.Authorize(w.in(), w.get(c), v1alpha1.ConnectionReadWrite, false) // a pending consent, and another mode
	w.check(err)
	leave()
	u := <-done
	if why, ok := errors.AsType[*connector.UnusableError](u.err); !ok || why.Reason != v1alpha1.ReasonConsentRequired {
		t.Errorf("use: %v", u.err)
	}
	if d := w.kept(c); d.Pending == nil || !d.Grant.Expires.Equal(begin.Add(2*hour)) || w.get(c).Spec.Mode != v1alpha1.ConnectionReadWrite {
		t.Errorf("custody: %+v", d)
	}
	c = w.get(c)
	w.check(w.options.Connections.UpdateAsCaller(w.in(), c.Name, func(c *v1alpha1.Connection) error {
		c.Spec.Mode = v1alpha1.ConnectionReadOnly
		return nil
	}))
	w.good(c)
	if n := len(w.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Somebody changes the custody or the status just before the commit: that is tried again, and the request is not.
func TestUseConflicts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*world, *v1alpha1.Connection)
	}{
		{"custody", func(w *world, c *v1alpha1.Connection) {
			w.check(w.vault.change(w.ctx, c.UID, func(d *document) error {
				d.Begun++
				return nil
			}))
		}},
		{"status", func(w *world, c *v1alpha1.Connection) {
			_, err := w.options.Connections.UpdateStored(w.in(), c.Name, func(c *v1alpha1.Connection) error {
				c.Status.LinkedAt = new(metav1.NewTime(c.Status.LinkedAt.Add(time.Second)))
				return nil
			})
			w.check(err)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			w.after(hour)
			commits := 0
			w.disk.before.Store(new(func() {
				if commits++; commits <= 3 {
					tc.change(w, c)
				}
			}))
			begun, linked := w.kept(c).Begun, w.get(c).Status.LinkedAt
			token := w.good(c)
			d, s := w.kept(c), w.get(c).Status
			if d.Grant.Access != token.Access.Reveal() || !s.ExpiresAt.Time.Equal(token.Expires) || len(w.requests()) != 1 || commits != 4 {
				t.Errorf("%d requests and %d commits", len(w.requests()), commits)
			}
			if d.Begun-begun+int64(s.LinkedAt.Sub(linked.Time)/time.Second) != 3 {
				t.Error("a change of somebody else is lost")
			}
		})
	}
}

// A disconnection or another consent comes just before the commit.
func TestUseCommitsTooLate(t *testing.T) {
	t.Parallel()
	t.Run("disconnected", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.link()
		old := w.kept(c).Grant.Refresh
		w.after(hour)
		w.disk.before.Store(new(func() {
			w.disk.before.Store(nil)
			w.check(w.Release(w.ctx, w.leave(c)))
		}))
		if reason := w.unusable(c); reason != "" {
			t.Errorf("reason %s", reason)
		}
		if row, err := w.vault.Load(c.UID); err != nil || !row.Gone {
			t.Errorf("%v: %v", row.Gone, err)
		}
		if got := w.provider.Revoked(); len(got) != 2 || got[0] != old {
			t.Errorf("revoked %v", got)
		}
	})
	t.Run("connected anew", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		c := w.link()
		old := w.kept(c).Grant.Refresh
		w.after(hour)
		w.disk.before.Store(new(func() {
			w.disk.before.Store(nil)
			w.link()
		}))
		if token := w.good(c); token.Sequence != 2 {
			t.Errorf("grant %d", token.Sequence)
		}
		if d := w.kept(c); len(d.Superseded) != 1 || d.Superseded[0].Refresh == old {
			t.Error("the new tokens of the earlier grant are not kept")
		}
	})
}

// Another consent is committed while a token is refreshed: its tokens are used, and the new tokens of the earlier grant are kept to be
// revoked. If the provider refuses the earlier grant, it alone is forgotten.
func TestUseWhileConnecting(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused %t", refused), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			old := w.kept(c).Grant.Refresh
			w.after(hour)
			entered, leave := make(chan struct{}), make(chan struct{})
			w.refreshes(func(rw http.ResponseWriter, r *http.Request) bool {
				close(entered)
				<-leave
				return refused && status(400, `{"error":"invalid_grant"}`)(rw, r)
			})
			done := w.begins(w.ctx, c)
			<-entered
			w.link()
			close(leave)
			u := <-done
			d := w.kept(c)
			if u.err != nil || u.token.Sequence != 2 || u.token.Access.Reveal() != d.Grant.Access {
				t.Fatalf("use: %v, grant %d", u.err, u.token.Sequence)
			}
			w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
			want := []string{d.Grant.Refresh}
			if refused {
				if len(d.Superseded) > 0 {
					t.Error("the grant that was refused is kept")
				}
			} else {
				if len(d.Superseded) != 1 || d.Superseded[0].Refresh == old || d.Superseded[0].Sequence != 1 {
					t.Fatal("the new tokens of the earlier grant are not kept")
				}
				want = append(want, d.Superseded[0].Refresh)
			}
			w.check(w.Release(w.ctx, w.leave(c)))
			if d := cmp.Diff(want, w.provider.Revoked()); d != "" {
				t.Errorf("revoked (-want +got):\n%s", d)
			}
		})
	}
}

// A refresh that fails while another consent is committed says nothing about that.
func TestUseFailsWhileConnecting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.after(hour)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.refreshes(func(rw http.ResponseWriter, r *http.Request) bool {
		close(entered)
		<-leave
		return status(503, "")(rw, r)
	})
	done := w.begins(w.ctx, c)
	<-entered
	w.link()
	close(leave)
	if u := <-done; u.err != nil || u.token.Sequence != 2 {
		t.Errorf("use: %v, grant %d", u.err, u.token.Sequence)
	}
	w.ready(c, metav1.ConditionTrue, v1alpha1.ReasonConsentCommitted, v1alpha1.ConnectionReady)
}

// The person disconnects while a token is refreshed: nothing is written afterwards, and the new tokens are revoked like those before.
func TestUseWhileDisconnecting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// until is what of the disconnection is over when the provider answers.
		until func(*world, *v1alpha1.Connection)
	}{
		{"deleted", func(w *world, c *v1alpha1.Connection) { w.leave(c) }},
		{"closed", func(w *world, c *v1alpha1.Connection) {
			w.leave(c)
			_, err := w.vault.close(w.ctx, c.UID)
			w.check(err)
		}},
		{"released", func(w *world, c *v1alpha1.Connection) { w.check(w.Release(w.ctx, w.leave(c))) }},
		{"gone", func(w *world, c *v1alpha1.Connection) {
			w.check(w.Release(w.ctx, w.leave(c)))
			w.check(w.options.Connections.UpdateAsCaller(w.in(), c.Name, func(c *v1alpha1.Connection) error {
				c.Finalizers = nil
				return nil
			}))
		}},
		{"gone and connected anew", func(w *world, c *v1alpha1.Connection) {
			w.check(w.Release(w.ctx, w.leave(c)))
			w.check(w.options.Connections.UpdateAsCaller(w.in(), c.Name, func(c *v1alpha1.Connection) error {
				c.Finalizers = nil
				return nil
			}))
			w.link()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.link()
			old := w.kept(c).Grant.Refresh
			w.after(hour)
			entered, leave := w.held()
			done := w.begins(w.ctx, c)
			<-entered
			tc.until(w, c)
			before := w.versions(c)
			leave()
			u := <-done
			if why, ok := errors.AsType[*connector.UnusableError](u.err); !ok || why.Reason != "" {
				t.Errorf("use: %v", u.err)
			}
			if tc.name == "deleted" { // whose tokens are still to be given back
				if w.counted(refreshed) != 1 || len(w.provider.Revoked()) > 0 {
					t.Error("the new tokens are not kept")
				}
			} else if d := cmp.Diff(before, w.versions(c)); d != "" || w.counted(discarded) != 1 {
				t.Errorf("written afterwards (-before +after), counted %d:\n%s", w.counted(discarded), d)
			}
			if tc.name == "deleted" || tc.name == "closed" {
				w.check(w.Release(w.ctx, w.get(c)))
			}
			got := w.provider.Revoked()
			fresh := slices.DeleteFunc(slices.Clone(got), func(token string) bool { return token == old })
			if len(fresh) != 1 || !strings.HasPrefix(fresh[0], "refresh-") || (len(got) == 2) != (tc.name != "deleted") {
				t.Errorf("revoked %v, and the old one was %s", got, old)
			}
		})
	}
}

// versions are those of what is stored of a connection.
func (w *world) versions(c *v1alpha1.Connection) string {
	w.t.Helper()
	row, err := w.vault.Load(c.UID)
	w.check(err)
	now, err := w.options.Connections.Get(w.in(), c.Name)
	if apierrors.IsNotFound(err) {
		now, err = &v1alpha1.Connection{}, nil
	}
	w.check(err)
	return fmt.Sprint(row.Version, row.Gone, now.UID, now.ResourceVersion)
}

// The access token is revoked if the provider does not replace refresh tokens: the refresh token was.
func TestUseWhileDisconnectingWithoutRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	old := w.kept(c).Grant.Refresh
	w.after(hour)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.refreshes(func(rw http.ResponseWriter, r *http.Request) bool {
		close(entered)
		<-leave
		return status(200, `{"access_token":"access-late","expires_in":3600}`)(rw, r)
	})
	done := w.begins(w.ctx, c)
	<-entered
	w.check(w.Release(w.ctx, w.leave(c)))
	close(leave)
	<-done
	if d := cmp.Diff([]string{old, "access-late"}, w.provider.Revoked()); d != "" {
		t.Errorf("revoked (-want +got):\n%s", d)
	}
}

// The provider refuses the refresh because the person's tokens were revoked meanwhile: there is nothing to write, or to give back.
func TestUseRefusedWhileDisconnecting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.link()
	w.after(hour)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.refreshes(func(http.ResponseWriter, *http.Request) bool {
		close(entered)
		<-leave
		return false
	})
	done := w.begins(w.ctx, c)
	<-entered
	w.check(w.Release(w.ctx, w.leave(c)))
	before := w.versions(c)
	close(leave)
	if why, ok := errors.AsType[*connector.UnusableError]((<-done).err); !ok || why.Reason != "" {
		t.Errorf("use: %v", why)
	}
	if d := cmp.Diff(before, w.versions(c)); d != "" || len(w.provider.Revoked()) != 1 || w.counted(discarded) != 1 {
		t.Errorf("revoked %v (-before +after):\n%s", w.provider.Revoked(), d)
	}
}
