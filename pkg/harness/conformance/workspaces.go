// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

// workspaces are the checks of workspaces and deltas.
func workspaces() []Check {
	return []Check{
		{Number: "W1", Required: "The agent works on the files that were sent.", Advice: "Write the files of the commit below subPath into the agent's working folder.", needs: []string{"P1"}, run: filesThere},
		{Number: "W2", Required: "If nothing was changed, the delta has no changes.", Advice: "Compare contents and the executable bit with the commit, and nothing else.", needs: []string{"W1"}, run: nothingChanged},
		{Number: "W3", Required: "The delta has just what the agent changed, and its size and digest are right.", Advice: "See the format of deltas. The digest is the SHA-256 of the file that GET returns.", needs: []string{"W2"}, run: changesFound},
		{Number: "W4", Required: "A delta stays as it is when the workspace changes.", Advice: "Keep the file, and not the means to make it.", needs: []string{"W3"}, run: deltaStays},
		{Number: "W5", Required: "There is no delta while a prompt is running.", Advice: "Answer Busy.", needs: []string{"W2"}, run: deltaMeanwhile},
		{Number: "W6", Required: "A delta above maxBytes is refused.", Advice: "Answer 413 TooLarge.", needs: []string{"W3"}, run: deltaTooLarge},
		{Number: "W7", Required: "Sessions share no files.", Advice: "Give each session a folder of its own.", needs: []string{"W3"}, run: ownFiles},
		{Number: "W8", Required: "With publication finalization a session waits for what became of its delta; without, it is not supported.", Advice: "The state is finalizing from a delta with changes on until publication-finalization.", needs: []string{"W3"}, run: finalized},
		{Number: "W9", Required: "A workspace that is no archive of the format is refused, and the right one is accepted afterwards.", Advice: "Check all of it before anything is written.", needs: []string{"W1"}, run: garbage},
	}
}

// baseline returns a workspace with a few files, as it is sent, and its commit.
func baseline() (archive []byte, commit string, err error) {
	objects := map[string]gitobject.Object{}
	put := func(o gitobject.Object) string {
		objects[o.Name()] = o
		return o.Name()
	}
	blob := func(text string) string { return put(gitobject.Object{Kind: gitobject.Blob, Data: []byte(text)}) }
	sub, err := gitobject.FormatTree([]gitobject.Entry{{Mode: gitobject.ModeExecutable, Name: "run.sh", ID: blob("#!/bin/sh\necho run\n")}})
	if err != nil {
		return nil, "", err
	}
	top, err := gitobject.FormatTree([]gitobject.Entry{
		{Mode: gitobject.ModeFile, Name: "README.md", ID: blob("the kit's file\n")},
		{Mode: gitobject.ModeFile, Name: ".gitignore", ID: blob("*.log\n")},
		{Mode: gitobject.ModeLink, Name: "link", ID: blob("README.md")},
		{Mode: gitobject.ModeFolder, Name: "bin", ID: put(sub)},
	})
	if err != nil {
		return nil, "", err
	}
	made := gitobject.FormatCommit(put(top), strings.Repeat("1", gitobject.NameLength), gitobject.Person{Name: "kit", Email: "kit@example.com"}, time.Unix(1_700_000_000, 0), "a workspace")
	commit = put(made)
	var file bytes.Buffer
	d := delta.Delta{Header: delta.Header{Version: delta.Version, Commit: commit, Changes: []delta.Change{}}, Objects: objects}
	err = d.Write(&file)
	return file.Bytes(), commit, err
}

// worked creates a session with the baseline.
func (p *probe) worked(ctx context.Context, intent harness.Intent) (*session, error) {
	s, err := p.session(ctx, harness.SessionSpec{Workspace: &harness.WorkspaceSpec{Intent: intent}})
	if err != nil {
		return nil, err
	}
	return s, s.send(ctx)
}

// send sends the baseline.
func (s *session) send(ctx context.Context) error {
	archive, commit, err := baseline()
	if err != nil {
		return err
	}
	st, err := s.PutWorkspace(ctx, harness.NewOperation(), archive)
	if err != nil {
		return did("sending a workspace", err)
	}
	if st.State != harness.SessionIdle || st.Commit != commit {
		return found("after the workspace was sent the session is %s with commit %s; it must be idle with %s", st.State, st.Commit, commit)
	}
	return nil
}

func filesThere(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	events, err := s.completed(ctx, "read README.md")
	if err != nil {
		return err
	}
	if got := said(events); !strings.Contains(got, "the kit's file") {
		return found("the agent was told to read README.md, and said %.100q", got)
	}
	return nil
}

// delta freezes and fetches a delta.
func (s *session) delta(ctx context.Context) (*delta.Delta, *harness.DeltaStatus, error) {
	st, err := s.Freeze(ctx, harness.NewOperation(), s.p.name(), *s.p.caps.Limits.MaxWorkspaceDeltaBytes)
	if err != nil {
		return nil, nil, did("taking a delta", err)
	}
	d, err := s.fetch(ctx, st)
	return d, st, err
}

func (s *session) fetch(ctx context.Context, st *harness.DeltaStatus) (*delta.Delta, error) {
	var file bytes.Buffer
	if err := s.Fetch(ctx, st, &file); err != nil {
		return nil, did("GET of a delta", err)
	}
	d, err := delta.Read(&file)
	if err != nil {
		return nil, found("the delta cannot be read: %v", err)
	}
	return d, nil
}

// changesOf describes what a delta changes, one line each.
func changesOf(d *delta.Delta) string {
	var lines []string
	for _, c := range d.Changes {
		how := "changed"
		if c.Was == (delta.Side{}) {
			how = "new"
		} else if c.Is == (delta.Side{}) {
			how = "gone"
		}
		lines = append(lines, fmt.Sprintf("%s %s %q", c.Path, how, d.Objects[c.Is.ID].Data))
	}
	return strings.Join(lines, ", ")
}

func nothingChanged(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	d, st, err := s.delta(ctx)
	if err != nil {
		return err
	}
	_, commit, err := baseline()
	if err != nil {
		return err
	}
	if st.Files != 0 || len(d.Changes) > 0 || d.Commit != commit {
		return found("the delta says %d files and has %s, at commit %s", st.Files, changesOf(d), d.Commit)
	}
	return nil
}

func changesFound(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentWrite)
	if err != nil {
		return err
	}
	if _, err := s.completed(ctx, "touch README.md changed", "touch new.txt text", "touch ignored.log noise"); err != nil {
		return err
	}
	d, st, err := s.delta(ctx)
	if err != nil {
		return err
	}
	const want = `README.md changed "changed", new.txt new "text"`
	if got := changesOf(d); got != want || st.Files != 2 {
		return found("the delta says %d files and has %s; it must have %s", st.Files, got, want)
	}
	commit := d.Objects[d.Commit]
	tree, ok := gitobject.TreeOf(commit)
	if _, there := d.Objects[tree]; !ok || !there {
		return found("the delta lacks the commit, or its folder")
	}
	return nil
}

func deltaStays(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	if _, err := s.completed(ctx, "touch new.txt one"); err != nil {
		return err
	}
	_, st, err := s.delta(ctx)
	if err != nil {
		return err
	}
	if _, err := s.completed(ctx, "touch new.txt two"); err != nil {
		return err
	}
	_, err = s.fetch(ctx, st)
	return err
}

func deltaMeanwhile(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	stream, prompt, err := s.start(ctx, longLease, "await-cancel")
	if err != nil {
		return err
	}
	_, err = s.Freeze(ctx, harness.NewOperation(), p.name(), *p.caps.Limits.MaxWorkspaceDeltaBytes)
	if err := refused("a delta while a prompt is running", err, harness.Busy); err != nil {
		_ = stream.Close()
		return err
	}
	return p.stop(ctx, s, prompt, stream)
}

func deltaTooLarge(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	if _, err := s.completed(ctx, "touch new.txt text"); err != nil {
		return err
	}
	_, err = s.Freeze(ctx, harness.NewOperation(), p.name(), 16)
	return refused("a delta of more than maxBytes", err, harness.TooLarge)
}

func ownFiles(ctx context.Context, p *probe) error {
	a, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	b, err := p.worked(ctx, harness.IntentRead)
	if err != nil {
		return err
	}
	if _, err := a.completed(ctx, "touch mine.txt secret of a"); err != nil {
		return err
	}
	events, err := b.prompt(ctx, "read mine.txt") // it may fail
	if err != nil {
		return err
	}
	d, _, err := b.delta(ctx)
	if err != nil {
		return err
	}
	if strings.Contains(said(events), "secret of a") || len(d.Changes) > 0 {
		return found("a session has the files of another: it said %.100q, and its delta has %s", said(events), changesOf(d))
	}
	return nil
}

func finalized(ctx context.Context, p *probe) error {
	s, err := p.worked(ctx, harness.IntentWrite)
	if err != nil {
		return err
	}
	if _, err := s.completed(ctx, "touch new.txt text"); err != nil {
		return err
	}
	_, st, err := s.delta(ctx)
	if err != nil {
		return err
	}
	f := harness.Finalization{Delta: st.ID, Outcome: "VerifiedExact", Commit: strings.Repeat("2", gitobject.NameLength)}
	if !p.caps.SupportsPublicationFinalization {
		_, err := s.Finalize(ctx, harness.NewOperation(), f)
		return refused("publication-finalization", err, harness.NotSupported)
	}
	now, err := s.Get(ctx)
	if err != nil {
		return did("GET of the session", err)
	}
	if now.State != harness.SessionFinalizing {
		return found("after a delta with changes the session is %s; it must be finalizing", now.State)
	}
	stream, err := s.Start(ctx, harness.NewOperation(), p.name(), s.spec(longLease, "say x"))
	if err == nil {
		_ = stream.Close()
	}
	if err := refused("a prompt before publication-finalization", err, harness.Busy); err != nil {
		return err
	}
	if now, err = s.Finalize(ctx, harness.NewOperation(), f); err != nil {
		return did("publication-finalization", err)
	}
	if now.State != harness.SessionIdle {
		return found("after publication-finalization the session is %s; it must be idle", now.State)
	}
	_, err = s.completed(ctx, "say on")
	return err
}

func garbage(ctx context.Context, p *probe) error {
	s, err := p.session(ctx, harness.SessionSpec{Workspace: &harness.WorkspaceSpec{Intent: harness.IntentRead}})
	if err != nil {
		return err
	}
	_, err = s.PutWorkspace(ctx, harness.NewOperation(), []byte("this is no archive"))
	if err := refused("a workspace that is no archive", err, harness.BadRequest); err != nil {
		return err
	}
	return s.send(ctx)
}
