// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook reads what a code host delivers to a webhook: GitHub's format, and Gitea's, which is GitHub's with other words for
// some actions. It does nothing else: whoever calls Parse has bounded the body and checked its signature (package server/door).
//
// # What Parse keeps to
//
//   - Only events about issues and pull requests are read. Of every other event, a ping among them, only the headers are: its body is
//     not even looked at.
//   - The signature says who sends a delivery, not that what is in it is good: titles, branches, labels and logins are chosen by
//     anybody who may open an issue. So each field has a form and a largest size. Names that do not have their form are ErrMalformed,
//     texts are shortened, and addresses that a browser may not open are left out.
//   - The text of an issue or pull request is shortened. People paste secrets into it, so whoever keeps it removes them.
//   - An error names the member and its rule, and never contains what was sent.
//
// The headers are not signed. What they say is therefore a hint: a delivery that was recorded may come again under another id or
// as another event, whose body then lacks what that event needs.
package webhook

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrMalformed means that a delivery is not one that GitHub or Gitea makes. The text of the error never contains what was sent.
var ErrMalformed = errors.New("the delivery is malformed")

// malformed is the error for a member or a header that breaks its rule.
func malformed(name, rule string) error { return fmt.Errorf("%w: %s: %s", ErrMalformed, name, rule) }

// Bounds of an Event, in bytes or in entries. A title and a text are shortened; everything else that is longer makes a delivery malformed.
const (
	// MaxHeader bounds Delivery, Hook and Name.
	MaxHeader = 128
	// MaxAction bounds Action.
	MaxAction = 64
	// MaxTitle bounds Title.
	MaxTitle = 1024
	// MaxBody bounds Body.
	MaxBody = 16 << 10
	// MaxRef bounds the names of branches.
	MaxRef = 512
	// MaxUser bounds Sender: 128 bytes, and [bot].
	MaxUser = 133
	// MaxType bounds SenderType.
	MaxType = 64
	// MaxLabel bounds each label. Gitea's have up to 255 characters.
	MaxLabel = 1024
	// MaxLabels bounds Labels.
	MaxLabels = 32
	// MaxAllLabels bounds AllLabels. GitHub allows 100 on an issue. A longer list is not cut, because the label that is cut off may be
	// the one that forbids something.
	MaxAllLabels = 100
)

// Kind is what an event is about.
type Kind string

// Kinds. An event about anything else has none.
const (
	Issue       Kind = "issue"
	PullRequest Kind = "pull_request"
)

// Actions for which the hosts have different words. All others have the words that GitHub uses, such as opened, edited and closed.
const (
	// Synchronize means that a pull request has other commits.
	Synchronize = "synchronize"
	// Labeled means that labels were added, and Unlabeled that some were removed, or that all were.
	Labeled   = "labeled"
	Unlabeled = "unlabeled"
	// LabelUpdated means that labels were added or removed, or both, and that the host does not say which: Gitea up to 1.26 at least.
	LabelUpdated = "label_updated"
)

// Event is a delivery, as far as the platform looks at it.
type Event struct {
	// Delivery is the host's id of the delivery; empty if the host gave none. GitHub gives the same one to a delivery that is repeated
	// and to other hooks of the same event; Gitea gives a new one each time.
	Delivery string
	// Hook is the number of the webhook, in digits. Empty if the host does not say, as Gitea.
	Hook string
	// Name is the event's name, for example issues or ping.
	Name string
	// Gitea is set if Gitea delivered it.
	Gitea bool

	// Kind says what the event is about. If it is empty, so are all fields below.
	Kind Kind
	// Action is what happened, in GitHub's words.
	Action string
	// Labels are the labels that were added or removed, if Action is Labeled or Unlabeled. They may be empty nevertheless.
	Labels []string
	// AllLabels are the labels that the issue or pull request has after it.
	AllLabels []string

	// Repository is OWNER/NAME.
	Repository string
	// RepositoryURL is the address of the repository, which codehost.ParseAddress takes; empty if the host gave none of this kind.
	RepositoryURL string
	// DefaultBranch is the branch that pull requests go to if nothing else is said; empty for an empty repository.
	DefaultBranch string

	// Number is the number of the issue or pull request in the repository.
	Number int64
	// Title is what somebody wrote, shortened to MaxTitle and without control characters.
	Title string
	// Body is the beginning of its text, without control characters.
	Body string
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL string
	// Sender is the login of who did it. SenderType is what the sender is, User or Bot for example. Empty if the host does not say;
	// Gitea gives no type.
	Sender, SenderType string
	// IsPullRequest is set if Kind is Issue and the issue is the one that belongs to a pull request. GitHub sends an event of this kind
	// for milestones. The fields below are empty in it.
	IsPullRequest bool

	// HeadRef is the branch that a pull request comes from. Gitea names refs/pull/NUMBER/head if the branch is gone. HeadSHA is the
	// commit it is at; empty if the host does not say.
	HeadRef, HeadSHA string
	// HeadRepository is the OWNER/NAME that HeadRef is in: another than Repository for a fork, and empty for one that was deleted.
	HeadRepository string
	// BaseRef is the branch that it is to be merged into.
	BaseRef string
	// Draft is set while it is not to be reviewed yet, and Merged once it was merged.
	Draft, Merged bool
}

// kinds are the events that are read, by their names.
var kinds = map[string]Kind{"issues": Issue, "pull_request": PullRequest}

// Parse reads a delivery. Every error is ErrMalformed. An event that is not about an issue or a pull request is no error; it has no
// Kind.
func Parse(header http.Header, body []byte) (Event, error) {
	e, err := parseHeader(header)
	if err != nil {
		return Event{}, err
	}
	kind := kinds[e.Name]
	if kind == "" {
		return e, nil
	}
	if body, err = jsonOf(header, body); err != nil {
		return Event{}, err
	}
	p, err := decode(body)
	if err != nil {
		return Event{}, err
	}
	e.Kind = kind
	if err := p.fill(&e); err != nil {
		return Event{}, err
	}
	return e, nil
}
