// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/server/models"
)

// Run is a run of a coding agent that asks its models. Which these are is the business of its Agent: the names of models that the agent
// sends are not looked at, because agents ask several models of their vendor for small things.
type Run struct {
	// Query names the models.
	Query models.Query
	// Meter records a request in the events of the task. It is for one request and those to the fallbacks.
	Meter models.Meter
	// Share is under what name the run takes its share of the slots.
	Share string
}

// serveTask carries out a request of the coding agent of a task. The server's tools are none of its business: it has its own.
func (x *exchange) serveTask() error {
	if x.h.o.Task == nil {
		return problem{code: http.StatusNotImplemented, message: "this server gives coding agents no models"}
	}
	run, err := x.h.o.Task(request.WithNamespace(x.r.Context(), x.call.namespace), x.call.task)
	if err != nil {
		return err
	}
	x.meter = models.Meters{run.Meter, x.h.own}
	if x.call.route.op == opModels {
		return x.listTask(run)
	}
	in, release, err := x.begin(run.Share)
	if err != nil {
		return err
	}
	choice, err := x.resolve(run.Query)
	if err != nil {
		release()
		return shown(err)
	}
	return x.forward(in, choice, release)
}

// listTask answers with the models of a run, first the one that is asked first.
func (x *exchange) listTask(run *Run) error {
	choice, err := x.resolve(run.Query)
	if err != nil {
		return shown(err)
	}
	all := []listed{}
	for _, c := range choice.Candidates {
		all = append(all, listedAs(c.Model, c.Provider))
	}
	return x.answerList(all)
}
