// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// childrenOf selects the tasks whose parent the task is. The label may be anybody's, so the UID decides.
func childrenOf(c *rest.Call, q url.Values) {
	q.Set("labelSelector", v1alpha1.LabelParentTask+"="+v1alpha1.LabelValue(c.Param("id")))
	q.Set("fieldSelector", "parentTaskUID="+c.Text("task.metadata.uid"))
}

// inTree selects what belongs to the tree of the task. %s stands for the UID of its root.
func inTree(selector string) func(*rest.Call, url.Values) {
	return func(c *rest.Call, q url.Values) {
		q.Set("fieldSelector", fmt.Sprintf(selector, cmp.Or(c.Text("task.status.delegation.rootUID"), c.Text("task.metadata.uid"))))
	}
}

// lines reads lines of a log or, if there are none, the result.
func lines(c *rest.Call) error {
	if err := c.Do("log"); err != nil {
		return err
	}
	if err := c.Do("result"); !rest.IsNotFound(err) {
		return err
	}
	return noLogs(c)
}

// outcome reads the result or, if there is none, the end of the log.
func outcome(c *rest.Call) error {
	if err := c.Do("result", "log"); err != nil || c.Has("result") || c.Has("log") {
		return err
	}
	return noLogs(c)
}

func noLogs(c *rest.Call) error {
	return rest.Refuse(http.StatusNotFound, "task %q has no logs yet", c.Param("id"))
}

// notBuiltin refuses the names of built-in tools.
func notBuiltin(_, name string) error {
	if !builtin.Has(name) {
		return nil
	}
	return rest.Refuse(http.StatusConflict, "tool %q is built in: its name is reserved", name)
}

// streamOfTask refuses other streams than those of tasks.
func streamOfTask(param, value string) error {
	if param != "streamType" || value == "task" {
		return nil
	}
	return rest.Refuse(http.StatusBadRequest, "%s: %q: events are submitted to streams of type task", param, value)
}

// decidedTask names the task in a decision, so that a decision about another task's approval finds none.
func decidedTask(params map[string]string, body map[string]json.RawMessage) error {
	name, err := json.Marshal(params["id"])
	body["taskName"] = name
	return err //nolint:wrapcheck // a text can be encoded
}
