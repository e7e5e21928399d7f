// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtools

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
	"github.com/platform-ai/platform/test/quickclock"
)

// outage is how many requests of a kind fail before the server is back: some 40 s of a run.
const outage = 12

// flaky answers as the API does once it is back. Before that it is alternately away and starting; what is created meanwhile
// is stored, and only the answer is lost.
type flaky struct {
	mu        sync.Mutex
	asked     map[string]int
	proposals map[string]*v1alpha1.MemoryProposal
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var answer any
	code := http.StatusCreated
	kind := path.Base(r.URL.Path)
	switch {
	case r.Method == http.MethodGet:
		code, answer = http.StatusOK, f.proposals[kind]
	case kind == "memorysearches":
		answer = &v1alpha1.MemorySearch{Status: v1alpha1.MemorySearchStatus{Items: []v1alpha1.MemoryMatch{{}}}}
	case kind == "transcriptsearches":
		answer = &v1alpha1.TranscriptSearch{Status: v1alpha1.TranscriptSearchStatus{Items: []v1alpha1.TranscriptMatch{{}}}}
	case kind == "memoryproposals":
		p := &v1alpha1.MemoryProposal{}
		_ = json.NewDecoder(r.Body).Decode(p)
		if answer = p; f.proposals[p.Name] == nil {
			f.proposals[p.Name] = p
			break
		}
		status := apierrors.NewAlreadyExists(v1alpha1.Resource("memoryproposals"), p.Name).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, answer = http.StatusConflict, status
	}
	if f.asked[kind]++; r.Method == http.MethodPost && f.asked[kind] <= outage {
		if f.asked[kind]%2 == 0 {
			panic(http.ErrAbortHandler) // the connection breaks off
		}
		code, answer = http.StatusServiceUnavailable, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// The requests about memories wait for a server that is away, as all others do: a run begins with its memories, and what it
// wants to be remembered is proposed once.
func TestMemoriesWaitForTheServer(t *testing.T) {
	api := &flaky{asked: map[string]int{}, proposals: map[string]*v1alpha1.MemoryProposal{}}
	s := httptest.NewServer(api)
	t.Cleanup(s.Close)
	base, ctx := runnertest.New(t, s.URL, v1alpha1.TaskSpec{}), t.Context()
	r, pauses := run{base.Run}, quickclock.New()
	r.Clock = pauses
	var err error
	if r.API, err = client.New(client.Config{ServerURL: s.URL, Token: "token"}, pauses); err != nil {
		t.Fatal(err)
	}
	if found, err := Recall(ctx, r.Run, v1alpha1.MemorySearchSpec{Recall: true}); err != nil || len(found) != 1 {
		t.Errorf("the memories that a run begins with: %v, %v", found, err)
	}
	if found, err := r.recallTool(ctx, v1alpha1.MemorySearchSpec{}); err != nil || len(found) != 1 {
		t.Errorf("recall_memory: %v, %v", found, err)
	}
	if found, err := r.searchTranscript(ctx, v1alpha1.TranscriptSearchSpec{}); err != nil || len(found) != 1 {
		t.Errorf("search_transcript: %v, %v", found, err)
	}
	made, err := r.propose(ctx, v1alpha1.MemoryProposalSpec{Title: "t"})
	if err != nil || len(api.proposals) != 1 || api.proposals[made.Name] == nil {
		t.Errorf("remember: %v, %v, stored %d", made, err, len(api.proposals))
	}
}
