// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

func (w *world) addClasses(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("gatewayclass").For(&v1alpha1.GatewayClass{}).WithOptions(options(parallel)).
		Complete(&step.Reconciler[*v1alpha1.GatewayClass]{
			Client: mgr.GetClient(), New: func() *v1alpha1.GatewayClass { return &v1alpha1.GatewayClass{} },
			Steps: []step.Step[*v1alpha1.GatewayClass]{{Name: "accept", Do: acceptClass}},
		})
}

// acceptClass says whether gateways of a class can be used.
func acceptClass(_ context.Context, c *v1alpha1.GatewayClass) error {
	s := &c.Status
	message := ""
	if c.Spec.ContractVersion != v1alpha1.GatewayContractV1 {
		message = fmt.Sprintf("spec.contractVersion: %q is not spoken here; use %q", c.Spec.ContractVersion, v1alpha1.GatewayContractV1)
	}
	s.Accepted, s.ObservedGeneration, s.Message = message == "", c.Generation, message
	set(&s.Conditions, c.Generation, judgment{
		v1alpha1.ConditionAccepted, s.Accepted, v1alpha1.ReasonValidationSucceeded, v1alpha1.ReasonValidationFailed, message,
	})
	return nil
}

// judgment is what a condition says: which one of two reasons counts.
type judgment struct {
	condition string
	is        bool
	yes, no   string
	message   string
}

// set sets conditions.
func set(conditions *[]metav1.Condition, generation int64, all ...judgment) {
	for _, j := range all {
		c := metav1.Condition{Type: j.condition, Status: metav1.ConditionTrue, Reason: j.yes, ObservedGeneration: generation}
		if !j.is {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, j.no, j.message
		}
		meta.SetStatusCondition(conditions, c)
	}
}
