// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/server/models"
)

// exchange is one request whose caller is known, and its answer.
type exchange struct {
	h      *Handler
	w      http.ResponseWriter
	r      *http.Request
	call   *call
	caller user.Info
	meter  models.Meter
}

// serve carries out the request. It returns an error only if nothing was written.
func (x *exchange) serve() error {
	ctx := x.r.Context()
	audit.AddAuditAnnotation(ctx, "compat."+v1alpha1.GroupName+"/path", x.call.path)
	if x.call.task != "" {
		return x.serveTask()
	}
	needs := models.Discover() // the chain has authorized the create of chats
	agent := x.call.query.Get("agent")
	if agent != "" {
		needs = append(needs, models.Access{Verb: "get", Resource: "agents", Name: agent})
	}
	if err := x.h.o.Models.Authorize(ctx, x.caller, x.call.namespace, needs...); err != nil {
		return err
	}
	x.w.Header().Set(headerTools, toolsDisabled)
	if x.call.route.op == opModels {
		return x.list()
	}
	in, release, err := x.begin(x.caller.GetName())
	if err != nil {
		return err
	}
	tools, err := x.tools(in)
	if err != nil {
		release()
		return err
	}
	choice, err := x.choose(in.model, agent)
	if err != nil {
		release()
		return err
	}
	if tools {
		defer release()
		return x.act(in, choice)
	}
	return x.forward(in, choice, release)
}

// begin takes a slot of those that are shared by who, and reads the request.
func (x *exchange) begin(who string) (in *incoming, release func(), err error) {
	if !x.h.slots.Acquire(who, 1) {
		return nil, nil, problem{code: http.StatusTooManyRequests, message: "too many requests are being answered, in total or for you; try again later", after: "1"}
	}
	release = sync.OnceFunc(func() { x.h.slots.Release(who, 1) })
	if in, err = x.read(); err != nil {
		release()
		return nil, nil, err
	}
	return in, release, nil
}

// read reads and checks the body, which the chain has opened.
func (x *exchange) read() (*incoming, error) {
	data, err := readAll(x.r.Body, x.r.ContentLength)
	if err != nil {
		if p, ok := asProblem(err); ok {
			return nil, p
		}
		return nil, invalid("", "the body could not be read: %v", err)
	}
	return read(x.call.route.op, data)
}

// choose finds the model that a name means: PROVIDER/MODEL if there is such a Provider, otherwise a model of the Agent
// or of the default Provider.
func (x *exchange) choose(name, agent string) (*models.Choice, error) {
	q := models.Query{Namespace: x.call.namespace, Agent: agent, Model: name}
	prefix, rest, ok := strings.Cut(name, "/")
	if ok && rest != "" && len(validation.IsDNS1123Subdomain(prefix)) == 0 {
		q.Provider, q.Model = prefix, rest
		c, err := x.resolve(q)
		if refused, is := errors.AsType[*refusal.Error](err); !is || refused.Reason != v1alpha1.ReasonProviderNotFound {
			return c, shown(err)
		}
		q.Provider, q.Model = "", name
	}
	c, err := x.resolve(q)
	return c, shown(err)
}

func (x *exchange) resolve(q models.Query) (*models.Choice, error) {
	return x.h.o.Models.Resolve(x.r.Context(), q)
}

// shown turns a refusal into an error of the client's.
func shown(err error) error {
	refused, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		return err
	}
	message := refused.Message
	if refused.Reason == v1alpha1.ReasonProviderNotFound {
		message += "; name one of the namespace's Providers as PROVIDER/MODEL"
	}
	return invalid("model", "model: %s", message)
}
