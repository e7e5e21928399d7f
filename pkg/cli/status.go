// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// status is what platform status prints. What the user may not know, or the server did not say, is left out.
type status struct {
	Server    string `json:"server"`
	Version   string `json:"version,omitempty"`
	Ready     bool   `json:"ready"`
	NotReady  string `json:"notReady,omitempty"`
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace"`
	Running   *int64 `json:"runningTasks,omitempty"`
	Pending   *int64 `json:"pendingTasks,omitempty"`
	Tasks     *int64 `json:"tasks,omitempty"`
	Approvals *int64 `json:"pendingApprovals,omitempty"`
}

func statusCommand(api *server, term *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show whether the server is ready, who you are to it, and what the namespace does", Args: cobra.NoArgs,
		Long: "Show whether the server is ready, who you are to it, and what the namespace does. The exit code is 1 if the server is not\n" +
			"ready. Through kube-apiserver, readiness is that of the cluster's API.",
	}
	f := addOutput(cmd, asTable, asJSON, asYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := api.config()
		if err != nil {
			return err
		}
		c, namespace, err := api.client()
		if err != nil {
			return err
		}
		s := &status{Server: config.Host, Namespace: namespace}
		if err := s.ask(cmd.Context(), c); err != nil {
			return err
		}
		if *f != asTable {
			err = term.write(s, *f)
		} else {
			err = term.say("%s", strings.Join(s.lines(), "\n"))
		}
		if err == nil && !s.Ready {
			err = &outcome{codeFailed, "the server is not ready"}
		}
		return err
	}
	return cmd
}

// ask reads everything. Only a server that does not answer is an error.
func (s *status) ask(ctx context.Context, c typed.CoreV1alpha1Interface) error {
	r := c.RESTClient()
	raw, err := r.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(raw, &v) == nil {
		s.Version = v.GitVersion
	}
	if _, err := r.Get().AbsPath("/readyz").Do(ctx).Raw(); err != nil {
		s.NotReady = explain(err)
	} else {
		s.Ready = true
	}
	me := &authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: "authentication.k8s.io/v1"}}
	if raw, err := posted(ctx, r, "/apis/authentication.k8s.io/v1/selfsubjectreviews", me); err == nil && json.Unmarshal(raw, me) == nil {
		s.User = me.Status.UserInfo.Username
	}
	for _, q := range []struct {
		phases []string
		to     **int64
	}{{nil, &s.Tasks}, {[]string{string(v1alpha1.TaskRunning)}, &s.Running}, {[]string{string(v1alpha1.TaskPending)}, &s.Pending}} {
		found, err := c.TaskQueries(s.Namespace).Create(ctx, &v1alpha1.TaskQuery{Spec: v1alpha1.TaskQuerySpec{Phases: q.phases, Limit: 1}}, metav1.CreateOptions{})
		if err == nil {
			*q.to = &found.Status.Matched
		}
	}
	waiting, err := c.Approvals(s.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "status.state=" + string(v1alpha1.ApprovalPending)})
	if err == nil {
		s.Approvals = new(int64(len(waiting.Items)))
	}
	return nil
}

func posted(ctx context.Context, r rest.Interface, path string, body any) ([]byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return r.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Raw()
}

// lines describes the status.
func (s *status) lines() []string {
	known := func(n *int64, what string) string {
		if n == nil {
			return "? " + what
		}
		return count(*n) + " " + what
	}
	server := s.Server
	if s.Version != "" {
		server += " (" + clean(s.Version) + ")"
	}
	ready := "ready"
	if !s.Ready {
		ready = "NOT READY: " + clean(s.NotReady)
	}
	out := []string{"server     " + server, "state      " + ready}
	if s.User != "" {
		out = append(out, "you        "+clean(s.User))
	}
	return append(out, "namespace  "+s.Namespace,
		"tasks      "+strings.Join([]string{known(s.Running, "running"), known(s.Pending, "pending"), known(s.Tasks, "in all")}, ", "),
		"approvals  "+known(s.Approvals, "pending"))
}
