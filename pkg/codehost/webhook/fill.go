// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"fmt"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
	"github.com/platform-ai/platform/pkg/visible"
)

// fill checks a body and writes it into an event, of which the headers are known. The headers are not signed, so the body may be
// another event's.
func (p *payload) fill(e *Event) error {
	i := p.Issue
	if e.Kind == PullRequest {
		if p.PullRequest == nil {
			return malformed("pull_request", "must be there")
		}
		if err := p.PullRequest.fill(e); err != nil {
			return err
		}
		i = p.PullRequest.issue()
	}
	if i == nil {
		return malformed("issue", "must be there")
	}
	if err := i.fill(e); err != nil {
		return err
	}
	if p.Number != nil && *p.Number != e.Number {
		return malformed("number", "must be the number in "+string(e.Kind))
	}
	if p.Repository == nil {
		return malformed("repository", "must be there")
	}
	if err := p.Repository.fill(e); err != nil {
		return err
	}
	if p.Sender != nil {
		if err := p.Sender.fill(e); err != nil {
			return err
		}
	}
	return p.fillAction(e)
}

func (i *issue) fill(e *Event) (err error) {
	if i.Number < 1 {
		return malformed(string(e.Kind)+".number", "must be at least 1")
	}
	e.Number, e.URL, e.IsPullRequest = i.Number, wire.URL(i.HTMLURL), i.PullRequest != nil
	e.Title, e.Body = clip.Text(visible.Plain(i.Title), MaxTitle), clip.Text(visible.Plain(i.Body), MaxBody)
	e.AllLabels, err = names(string(e.Kind)+".labels", i.Labels, MaxAllLabels)
	return err
}

// issue returns what a pull request has in common with an issue.
func (p *pullRequest) issue() *issue {
	return &issue{Number: p.Number, Title: p.Title, Body: p.Body, HTMLURL: p.HTMLURL, Labels: p.Labels}
}

func (p *pullRequest) fill(e *Event) error {
	e.HeadRef, e.HeadSHA, e.BaseRef, e.Draft, e.Merged = p.Head.Ref, p.Head.SHA, p.Base.Ref, p.Draft, p.Merged
	var fork error
	if r := p.Head.Repo; r != nil {
		e.HeadRepository = r.FullName
		fork = repositoryRule.check("pull_request.head.repo.full_name", r.FullName)
	}
	return cmp.Or(
		refRule.check("pull_request.head.ref", p.Head.Ref),
		refRule.check("pull_request.base.ref", p.Base.Ref),
		commitRule.optional("pull_request.head.sha", p.Head.SHA),
		fork,
	)
}

func (r *repository) fill(e *Event) error {
	e.Repository, e.DefaultBranch = r.FullName, r.DefaultBranch
	// An address that names another repository is not one of this repository.
	if a, err := codehost.ParseAddress(r.HTMLURL); err == nil && a.Owner+"/"+a.Name == r.FullName {
		e.RepositoryURL = wire.URL(r.HTMLURL)
	}
	return cmp.Or(
		repositoryRule.check("repository.full_name", r.FullName),
		refRule.optional("repository.default_branch", r.DefaultBranch),
	)
}

func (u *user) fill(e *Event) error {
	e.Sender, e.SenderType = u.Login, u.Type
	return cmp.Or(
		loginRule.check("sender.login", u.Login),
		typeRule.optional("sender.type", u.Type),
	)
}

// names returns the names of labels.
func names(member string, labels []label, most int) ([]string, error) {
	if len(labels) > most {
		return nil, malformed(member, fmt.Sprintf("must have at most %d entries", most))
	}
	var all []string
	for _, l := range labels {
		if err := labelRule.check(member, l.Name); err != nil {
			return nil, err
		}
		all = append(all, l.Name)
	}
	return all, nil
}
