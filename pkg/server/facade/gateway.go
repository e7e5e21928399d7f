// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

// gatewayRows returns the rows of what gateways receive and deliver. Classes, gateways and bindings are objects (typeRows). Adapters post
// their events to a door of the server, which is no row, because its callers have no credential of this API.
func gatewayRows() []rest.Row {
	const most = 500 // records of a page
	records := func(path, resource string, of v1alpha1.GatewayRecords, record []rest.Field, narrow ...string) []rest.Row {
		return []rest.Row{
			{
				Method: http.MethodGet, Path: path,
				Native: asked("gatewayrecordqueries", "GatewayRecordQuery", func(q *rest.Query) {
					q.Set("records", string(of)).Texts("gateway", "binding", "session", "task").Texts(narrow...).List("states", "state").Either("cursor", "continue", "cursor").Limit(most)
				}),
				Answer: rest.Answer{Fields: append(list("status."+string(of), record), rest.Field{Name: "metadata", From: []string{"status"}, Default: "{}", Only: rest.Fields("continue: continue")})},
			},
			{Method: http.MethodGet, Path: path + "/:id", Native: one("get", resource+"/:id"), Answer: rest.Answer{Fields: record}},
		}
	}
	const deliveries = "/api/v1/gateway-deliveries"
	return slices.Concat(
		records("/api/v1/gateway-events", "gatewayevents", v1alpha1.GatewayRecordsEvents, gatewayEvent()),
		records(deliveries, "gatewaydeliveries", v1alpha1.GatewayRecordsDeliveries, gatewayDelivery(), "event"),
		[]rest.Row{{
			Method: http.MethodPost, Path: deliveries + "/:id/retry", Answer: rest.Answer{Code: http.StatusAccepted, Fields: gatewayDelivery()},
			Native: []rest.Native{{Verb: "create", Path: "gatewaydeliveries/:id/retry", Send: `{"apiVersion":"core.platform.ai/v1alpha1","kind":"GatewayDelivery"}`}},
		}},
	)
}

// ofGateway returns the fields that events and deliveries share. Binding, session and task are in the spec of a delivery; those of an event are
// found later, so they are in its status.
func ofGateway(found string) []rest.Field {
	return rest.Fields(
		"id: metadata.name", "namespace: metadata.namespace", "namespaceUid: spec.namespaceUid", "gatewayUid: spec.gatewayUid", "gatewayGeneration: spec.gatewayGeneration",
		"gatewayName: spec.gatewayName", "bindingName: "+found+".bindingName", "sessionName: "+found+".sessionName", "taskName: "+found+".taskName",
		`state: status.state = ""`, `accountId: spec.accountId = ""`, `contextId: spec.contextId = ""`, "threadId: spec.threadId", "replyTarget: spec.replyTarget", `text: spec.text = ""`,
		"metadata: spec.metadata", "providerMessageId: status.providerMessageId", "attemptCount: status.attemptCount = 0", "nextAttemptAt: status.nextAttemptAt",
		"expiresAt: status.expiresAt", "createdAt: spec.createdAt = null", "updatedAt: status.updatedAt | spec.createdAt = null",
	)
}

// gatewayEvent returns the fields of an event as REST clients see it.
func gatewayEvent() []rest.Field {
	return append(ofGateway("status"), rest.Fields(
		"bindingUid: status.bindingUid", "bindingGeneration: status.bindingGeneration", "agentName: status.agentName", "agentUid: status.agentUid",
		`externalEventId: spec.externalEventId = ""`, `protocolVersion: spec.protocolVersion = ""`, `eventType: spec.eventType = ""`, "stateMessage: status.stateMessage",
		`senderId: spec.senderId = ""`, "senderDisplayName: spec.senderDisplayName", "taskUid: status.taskUid", "deliveryId: status.deliveryId",
		"transcriptOrder: status.transcriptOrder", "occurredAt: spec.occurredAt", "receivedAt: spec.receivedAt", "completedAt: status.completedAt",
	)...)
}

// gatewayDelivery returns the fields of a delivery as REST clients see it.
func gatewayDelivery() []rest.Field {
	return append(ofGateway("spec"), rest.Fields(
		`idempotencyId: spec.idempotencyId = ""`, `eventId: spec.eventId = ""`, `kind: spec.kind = ""`, "maxAttempts: spec.maxAttempts",
		"manualRetryCount: status.manualRetryCount = 0", "lastError: status.lastError", "deliveredAt: status.deliveredAt",
	)...)
}
