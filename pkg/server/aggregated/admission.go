// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quotaconfig "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/host/policy"
)

// quotaWorkers is the number of namespaces whose quotas are charged concurrently. It is Kubernetes' own default.
const quotaWorkers = 5

// admission makes the plugins that run after NamespaceLifecycle: first those that change objects, then those that
// validate them. The quota is last, so that a refused request is not charged.
func (o *Options) admission(ctx context.Context, g *genericapiserver.Config, host kubernetes.Interface) ([]admission.Interface, error) {
	var plugins []admission.Interface
	known, err := hasMutatingPolicies(host.Discovery())
	switch {
	case err != nil:
		return nil, err
	case !known:
		klog.FromContext(ctx).Info("The cluster has no MutatingAdmissionPolicies in v1; none is looked for")
	default:
		own, err := discovery.NewDiscoveryClientForConfig(g.LoopbackClientConfig)
		if err != nil {
			return nil, fmt.Errorf("admission client: %w", err)
		}
		plugins = append(plugins, policy.NewMutating(own, v1alpha1.SchemeGroupVersion))
	}
	mutating, err := mutatingwebhook.NewMutatingWebhook(nil)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", mutatingwebhook.PluginName, err)
	}
	validating, err := validatingwebhook.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", validatingwebhook.PluginName, err)
	}
	quota, err := newQuota(g)
	if err != nil {
		return nil, fmt.Errorf("admission plugin %s: %w", resourcequota.PluginName, err)
	}
	return append(plugins, mutating, policy.New(), validating, quota), nil
}

// newQuota makes the plugin that counts objects. It ignores events and approvals, which tasks append and nobody
// creates or deletes individually, and what is answered and not stored.
func newQuota(g *genericapiserver.Config) (admission.Interface, error) {
	q, err := resourcequota.NewResourceQuota(&quotaconfig.Configuration{}, quotaWorkers)
	if err != nil {
		return nil, err
	}
	q.SetDrainedNotification(g.DrainedNotify())
	q.SetQuotaConfiguration(generic.NewConfiguration(nil, map[schema.GroupResource]struct{}{
		v1alpha1.Resource("executionevents"): {},
		v1alpha1.Resource("approvals"):       {},
		v1alpha1.Resource("toolcalls"):       {},
		v1alpha1.Resource("chats"):           {},
	}))
	return q, nil
}

// hasMutatingPolicies reports whether the cluster serves the kinds whose informers the plugin waits for. Kubernetes
// has served them in v1 since 1.36.
func hasMutatingPolicies(host discovery.DiscoveryInterface) (bool, error) {
	list, err := host.ServerResourcesForGroupVersion(admissionregistrationv1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("admission plugin %s: discovery: %w", mutatingpolicy.PluginName, err)
	}
	for _, r := range list.APIResources {
		if r.Name == "mutatingadmissionpolicies" {
			return true, nil
		}
	}
	return false, nil
}
