// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

// connectorProvider is an accepted provider with tools of source HTTP, those whose names begin with "write" of class write.
func connectorProvider(name string, tools ...string) *v1alpha1.ConnectorProvider {
	p := &v1alpha1.ConnectorProvider{}
	p.Namespace, p.Name = plantest.Namespace, name
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs} {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	for _, tool := range tools {
		t := v1alpha1.ConnectorTool{
			Name: tool, Class: v1alpha1.ConnectorToolRead, Source: v1alpha1.ConnectorSourceHTTP, Description: "d",
			Parameters: &apiextensionsv1.JSON{Raw: []byte(`{"type":"object"}`)}, HTTP: &v1alpha1.ConnectorToolHTTP{URL: "https://api.example/" + tool},
		}
		if strings.HasPrefix(tool, "write") {
			t.Class = v1alpha1.ConnectorToolWrite
		}
		p.Spec.Tools = append(p.Spec.Tools, t)
	}
	return p
}

// ann is who asked for the task.
var ann = &v1alpha1.TaskRequester{Issuer: "https://login.example", Subject: "ann"}

func connectionOf(who *v1alpha1.TaskRequester, provider string, mode v1alpha1.ConnectionMode) *v1alpha1.Connection {
	c := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Subject: v1alpha1.ConnectionSubject{Issuer: who.Issuer, Subject: who.Subject}, Mode: mode}}
	c.Namespace, c.Name, c.UID = plantest.Namespace, connector.Name(provider, who.Issuer, who.Subject), "u-1"
	c.Status.GrantSequence, c.Status.Consent = 3, &v1alpha1.ConnectionConsent{AuthorityDigest: "a"}
	return c
}
