// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// task is the native path of the task that the REST path names, or of something below it.
func (c *call) task(below ...string) (string, error) {
	ns, err := c.namespace(c.query.Get("namespace"))
	return in(ns, append([]string{"tasks", c.params["id"]}, below...)...), err
}

// listTasks passes on what narrows a list.
func listTasks(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	q, err := page(c.query, true)
	if err != nil {
		return err
	}
	if s := c.query.Get("labelSelector"); s != "" {
		if _, err := labels.Parse(s); err != nil {
			return badRequest("labelSelector: %v", err)
		}
		q.Set("labelSelector", s)
	}
	return c.pass(native{method: http.MethodGet, path: in(ns, "tasks"), query: q}, without(listMembers()...))
}

// getTask sends the object as it is. A plan would be a member of it; there is no store of plans.
func getTask(c *call) error { return c.get(shape{}) }

// get sends what is at the task, or below it.
func (c *call) get(s shape, below ...string) error {
	path, err := c.task(below...)
	if err != nil {
		return err
	}
	return c.pass(native{method: http.MethodGet, path: path}, s)
}

func deleteTask(c *call) error {
	path, err := c.task()
	if err != nil {
		return err
	}
	if err := c.fetch(native{method: http.MethodDelete, path: path}, nil); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func createTask(c *call) error {
	body, err := c.object(false, refuseIdentity)
	if err != nil {
		return err
	}
	t, err := taskBody(body)
	if err != nil {
		return err
	}
	ns, err := c.namespace(t.namespace, c.query.Get("namespace"))
	if err != nil {
		return err
	}
	n, err := post(in(ns, "tasks"), t.object)
	if err != nil {
		return err
	}
	return c.pass(n, shape{code: http.StatusCreated})
}

// children lists the tasks that name the task as their parent.
func children(c *call) error {
	ns, err := c.namespace(c.query.Get("namespace"))
	if err != nil {
		return err
	}
	q, err := page(c.query, true)
	if err != nil {
		return err
	}
	if err := c.fetch(native{method: http.MethodGet, path: in(ns, "tasks", c.params["id"])}, nil); err != nil {
		return err
	}
	q.Set("labelSelector", v1alpha1.LabelParentTask+"="+v1alpha1.LabelValue(c.params["id"]))
	return c.pass(native{method: http.MethodGet, path: in(ns, "tasks"), query: q}, without(listMembers()...))
}

// plan answers for whoever may read the task that nothing keeps plans.
func plan(c *call) error {
	path, err := c.task()
	if err == nil {
		err = c.fetch(native{method: http.MethodGet, path: path}, nil)
	}
	if err != nil {
		return err
	}
	return restError{code: http.StatusNotImplemented, message: "plan store is not configured"}
}

// result and artifacts send what is at the task without the frame of a Kubernetes object.
func result(c *call) error { return c.get(plain(), "result") }

func artifacts(c *call) error { return c.get(plain(), "artifacts") }

func artifact(c *call) error { return c.get(shape{}, "artifacts", c.params["filename"]) }
