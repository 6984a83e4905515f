import { completable, fromJsonSchema, type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { listedSchema } from '../../../../src/mcp/listed-schema.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=='

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const about = (name: string) => ({ description: `Fixture ${name} of the conformance suite` })

/** What the suite wants to read: tools, resources and prompts with fixed content. */
export const registerContent = (server: McpServer): void => {
  registerTools(server)
  registerResources(server)
  registerPrompts(server)
}

const registerTools = (server: McpServer) => {
  const image = { type: 'image' as const, data: PNG, mimeType: 'image/png' }
  server.registerTool('test_simple_text', about('test_simple_text'), () =>
    text('This is a simple text response for testing.'),
  )
  server.registerTool('test_image_content', about('test_image_content'), () => ({ content: [image] }))
  server.registerTool('test_audio_content', about('test_audio_content'), () => ({
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }))
  server.registerTool('test_embedded_resource', about('test_embedded_resource'), () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }))
  server.registerTool('test_multiple_content_types', about('test_multiple_content_types'), () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: JSON.stringify({ test: 'data', value: 123 }),
        },
      },
    ],
  }))
  server.registerTool('test_error_handling', about('test_error_handling'), () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool('test_tool_with_progress', about('test_tool_with_progress'), async ctx => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await ctx.mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        })
      await pause(50)
    }
    return text('Progress was reported.')
  })
  server.registerTool('test_tool_with_logging', about('test_tool_with_logging'), async ctx => {
    for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await ctx.mcpReq.log('info', line)
      await pause(50)
    }
    return text('Three lines were logged.')
  })
  server.registerTool('test_reconnection', about('test_reconnection'), async ctx => {
    ctx.http?.closeSSE?.()
    await pause(100)
    return text('The stream was closed before this result.')
  })
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      ...about('json_schema_2020_12_tool'),
      inputSchema: fromJsonSchema<Record<string, unknown>>(SCHEMA_2020_12),
    },
    () => text('ok'),
  )
  server.registerTool(
    'test_custom_header',
    {
      ...about('test_custom_header'),
      inputSchema: listedSchema({
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
        required: ['region'],
      }),
    },
    () => text('ok'),
  )
}

/** The vocabulary the scenario `json-schema-2020-12` looks for; a server must list it as it is. */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

const registerResources = (server: McpServer) => {
  server.registerResource('static-text', 'test://static-text', { mimeType: 'text/plain' }, uri => ({
    contents: [
      {
        uri: uri.href,
        mimeType: 'text/plain',
        text: 'This is the content of the static text resource.',
      },
    ],
  }))
  server.registerResource('static-binary', 'test://static-binary', { mimeType: 'image/png' }, uri => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: PNG }],
  }))
  server.registerResource('watched', 'test://watched-resource', { mimeType: 'text/plain' }, uri => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Watched resource content' }],
  }))
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { mimeType: 'application/json' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  )
}

const registerPrompts = (server: McpServer) => {
  const said = (...parts: Parameters<typeof message>[0][]) => ({ messages: parts.map(message) })
  server.registerPrompt('test_simple_prompt', about('test_simple_prompt'), () =>
    said({ type: 'text', text: 'This is a simple prompt for testing.' }),
  )
  const argument = (name: string) =>
    completable(z.string().describe(name), value => ['park', 'party'].filter(word => word.startsWith(value)))
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      ...about('test_prompt_with_arguments'),
      argsSchema: z.object({ arg1: argument('First'), arg2: argument('Second') }),
    },
    ({ arg1, arg2 }) => said({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      ...about('test_prompt_with_embedded_resource'),
      argsSchema: z.object({ resourceUri: z.string() }),
    },
    ({ resourceUri }) =>
      said(
        {
          type: 'resource',
          resource: {
            uri: resourceUri,
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        },
        { type: 'text', text: 'Please process the embedded resource above.' },
      ),
  )
  server.registerPrompt('test_prompt_with_image', about('test_prompt_with_image'), () =>
    said(
      { type: 'image', data: PNG, mimeType: 'image/png' },
      { type: 'text', text: 'Please analyze the image above.' },
    ),
  )
}

type Content =
  | { type: 'text'; text: string }
  | { type: 'image'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }

const message = (content: Content) => ({ role: 'user' as const, content })
