// Maps errors to a status and a body with code, message and remedy. Only bugs are a 500.

import type { FastifyError, FastifyReply } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { UserError } from '../util/errors.js';
import { Expired, Overloaded } from './batcher.js';
import { KeyConflict } from './event-journal.js';

export interface Problem {
  status: number;
  code: string;
  message: string;
  remedy?: string;
  /** Seconds after which to retry. */
  retryAfter?: number;
}

const NOT_FOUND = new Set(['unknown-user', 'unknown-item']);

export function problemOf(error: FastifyError | Error): Problem {
  if (error instanceof Overloaded) {
    const message = 'too many requests are waiting';
    return { status: 429, code: 'overloaded', message, remedy: 'Try again after Retry-After.', retryAfter: 1 };
  }
  if (error instanceof Expired) {
    return { status: 503, code: 'timeout', message: error.message, remedy: 'Try again.', retryAfter: 1 };
  }
  if (error instanceof KeyConflict) {
    return { status: 409, code: 'key-conflict', message: error.message, remedy: 'Use a new key for new events.' };
  }
  if (error instanceof UserError) {
    const { code, message, remedy } = error;
    return { status: NOT_FOUND.has(code) ? 404 : 400, code, message, remedy };
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    const [issue] = error.validation;
    const message = `${issue?.instancePath || 'the body'}: ${issue?.message ?? 'is invalid'}`;
    return { status: 400, code: 'bad-request', message, remedy: 'See /openapi.json.' };
  }
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500) return { status, code: 'code' in error ? error.code : 'bad-request', message: error.message };
  return { status: 500, code: 'internal', message: 'an error of the server; its log has the details' };
}

export function sendProblem(reply: FastifyReply, { status, retryAfter, ...problem }: Problem): FastifyReply {
  if (retryAfter !== undefined) void reply.header('retry-after', String(retryAfter));
  return reply.status(status).send({ error: problem });
}
