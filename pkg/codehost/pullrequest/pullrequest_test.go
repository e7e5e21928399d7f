// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/test/kit"
)

// TestReconcile: what becomes of an order on each host.
func TestReconcile(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){
		"once": once, "adopted": adopted, "moved": moved, "branches": branches, "renamed base": renamedBase, "deleted base": deletedBase, "ended": ended,
		"copied": copied, "credentials": credentials, "other repository": otherRepository,
		"at once": atOnce, "lost answer": lostAnswer, "cut anywhere": cutAnywhere,
	})
}

// reconcile carries an order out and compares the outcome.
func reconcile(t *testing.T, p place, o pullrequest.Order, want pullrequest.Outcome, how pullrequest.How) pullrequest.Answer {
	t.Helper()
	a := kit.Must[pullrequest.Answer](t)(pullrequest.Reconcile(t.Context(), p.host(t), o))
	if a.Outcome != want || a.How != how || (a.Receipt == nil) != (how == "") {
		t.Fatalf("%s %q %+v, want %s %q", a.Outcome, a.How, a.Receipt, want, how)
	}
	return a
}

func once(t *testing.T, p place) {
	o := p.order(t, "work")
	made := reconcile(t, p, o, pullrequest.Open, pullrequest.Created)
	for range 2 {
		if a := reconcile(t, p, o, pullrequest.Open, pullrequest.Found); *a.Receipt != *made.Receipt {
			t.Errorf("%+v, want %+v", a.Receipt, made.Receipt)
		}
	}
	o.Number = made.Receipt.Number
	reconcile(t, p, o, pullrequest.Open, pullrequest.Found)
	o.Number = 4711
	reconcile(t, p, o, pullrequest.Gone, "")
	all := p.list(t)
	if len(all) != 1 {
		t.Fatalf("%d pull requests", len(all))
	}
	is := seen{1, true, o.Title, "What was done.\n\n<!-- platform: generation 3 -->\n<!-- platform: pull-request pub-work -->\n", "main", "work", o.HeadSHA}
	if got := all[0]; strings.TrimSpace(got.body) != strings.TrimSpace(is.body) || got.number != 1 || !got.open || got.title != is.title || got.base != is.base || got.commit != is.commit {
		t.Errorf("%+v", got)
	}
	r := *made.Receipt
	if r.ID == "" || r.URL == "" {
		t.Errorf("%+v", r)
	}
	r.ID, r.URL = "", ""
	if r != (v1alpha1.PullRequestReceipt{Number: 1, State: "open", BaseBranch: "main", HeadBranch: "work", HeadSHA: o.HeadSHA}) {
		t.Errorf("%+v", r)
	}
}

// adopted: an open pull request of the same branches is the one, and keeps its text. One of another base is not, nor a closed one.
func adopted(t *testing.T, p place) {
	o := p.order(t, "work")
	p.commit(t, "release")
	p.close(t, p.pull(t, "closed", "main", "work"))
	p.pull(t, "elsewhere", "release", "work")
	n := p.pull(t, "by a person", "main", "work")
	for range 2 {
		if a := reconcile(t, p, o, pullrequest.Open, pullrequest.Adopted); a.Receipt.Number != n {
			t.Errorf("%+v", a.Receipt)
		}
	}
	if all := p.list(t); len(all) != 3 || all[2].body != "by a person" {
		t.Errorf("%+v", all)
	}
}

// moved: nothing is made of a commit that was not ordered, and what has moved later is said.
func moved(t *testing.T, p place) {
	o := p.order(t, "work")
	later := o
	later.HeadSHA = p.commit(t, "work")
	reconcile(t, p, o, pullrequest.HeadMoved, "")
	if all := p.list(t); len(all) != 0 {
		t.Fatalf("%+v", all)
	}
	reconcile(t, p, later, pullrequest.Open, pullrequest.Created)
	now := p.commit(t, "work")
	if a := reconcile(t, p, later, pullrequest.HeadMoved, pullrequest.Found); a.Receipt.HeadSHA != now {
		t.Errorf("%+v", a.Receipt)
	}
}

// branches: what a branch that is missing, or has nothing new, means.
func branches(t *testing.T, p place) {
	o := p.order(t, "work")
	o.Base = "gone"
	reconcile(t, p, o, pullrequest.BaseMissing, "")
	o.Base, o.Head = "", "gone"
	reconcile(t, p, o, pullrequest.HeadMissing, "")
	o.Head, o.HeadSHA = "main", kit.Must[string](t)(p.host(t).Head(t.Context(), "main"))
	reconcile(t, p, o, pullrequest.NothingToMerge, "")
	if all := p.list(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

func renamedBase(t *testing.T, p place) {
	o := p.order(t, "work")
	p.commit(t, "release")
	o.Base = "release"
	reconcile(t, p, o, pullrequest.Open, pullrequest.Created)
	p.renameBranch(t, "release", "stable")
	if a := reconcile(t, p, o, pullrequest.Retargeted, pullrequest.Found); a.Receipt.BaseBranch != "stable" {
		t.Errorf("%+v", a.Receipt)
	}
	again := o
	again.Key = "another"
	reconcile(t, p, again, pullrequest.BaseMissing, "")
	if all := p.list(t); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

func deletedBase(t *testing.T, p place) {
	o := p.order(t, "work")
	p.commit(t, "release")
	o.Base = "release"
	reconcile(t, p, o, pullrequest.Open, pullrequest.Created)
	p.drop(t, "release")
	// What a host does with it, and when, is its own affair: Gitea gives it the default branch some time later.
	a := kit.Must[pullrequest.Answer](t)(pullrequest.Reconcile(t.Context(), p.host(t), o))
	if a.How != pullrequest.Found || a.Outcome != pullrequest.BaseMissing && a.Outcome != pullrequest.Retargeted {
		t.Errorf("%+v", a)
	}
	if all := p.list(t); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// ended: a pull request that was closed or merged remains the one.
func ended(t *testing.T, p place) {
	o := p.order(t, "work")
	p.close(t, reconcile(t, p, o, pullrequest.Open, pullrequest.Created).Receipt.Number)
	if a := reconcile(t, p, o, pullrequest.Closed, pullrequest.Found); a.Receipt.State != "closed" {
		t.Errorf("%+v", a.Receipt)
	}
	other := o
	other.Key = "pub-later"
	p.merge(t, reconcile(t, p, other, pullrequest.Open, pullrequest.Created).Receipt.Number)
	if a := reconcile(t, p, other, pullrequest.Merged, pullrequest.Found); a.Receipt.State != "merged" {
		t.Errorf("%+v", a.Receipt)
	}
	if all := p.list(t); len(all) != 2 {
		t.Errorf("%+v", all)
	}
}

// copied: a person's pull request with the platform's text in it stays open, and is not the one.
func copied(t *testing.T, p place) {
	o := p.order(t, "work")
	p.commit(t, "release")
	made := reconcile(t, p, o, pullrequest.Open, pullrequest.Created)
	p.pull(t, p.list(t)[0].body, "release", "work")
	if a := reconcile(t, p, o, pullrequest.Open, pullrequest.Found); a.Receipt.Number != made.Receipt.Number {
		t.Errorf("%+v", a.Receipt)
	}
	for _, is := range p.list(t) {
		if !is.open {
			t.Errorf("%+v", is)
		}
	}
}

func credentials(t *testing.T, p place) {
	o := p.order(t, "work")
	for name, token := range map[string]string{"wrong": "0123456789abcdef0123456789abcdef01234567", "read-only": p.readOnly} {
		if a, err := pullrequest.Reconcile(t.Context(), p.open(t, p.url, token), o); !errors.Is(err, codehost.ErrCredential) || errors.Is(err, pullrequest.ErrUnknown) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
	if all := p.list(t); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// otherRepository: neither a repository that was renamed nor another one in its place is taken for the one that was ordered.
func otherRepository(t *testing.T, p place) {
	o := p.order(t, "work")
	o.Repository = kit.Must[codehost.Repository](t)(p.host(t).Repository(t.Context())).RepositoryIdentity
	reconcile(t, p, o, pullrequest.Open, pullrequest.Created)
	p.replaceRepository(t)
	reconcile(t, p, o, pullrequest.OtherRepository, "")
	p.renameRepository(t, "elsewhere")
	if a, err := pullrequest.Reconcile(t.Context(), p.host(t), o); !errors.Is(err, codehost.ErrRedirect) {
		t.Errorf("%+v %v", a, err)
	}
}
