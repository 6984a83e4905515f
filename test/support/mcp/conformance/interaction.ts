import { randomBytes } from 'node:crypto'
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  type McpServer,
} from '@modelcontextprotocol/server'
import { z } from 'zod'

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const about = (name: string) => ({ description: `Fixture ${name} of the conformance suite` })
const ask = (message: string, field: string, schema: z.ZodType = z.string()) =>
  inputRequired.elicit({ message, requestedSchema: z.object({ [field]: schema }) })
const generate = (prompt: string, maxTokens: number) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
    maxTokens,
  })

const codec = createRequestStateCodec<{ step: string }>({ key: randomBytes(32) })

/** Tools that ask their client something, in the way of the older revisions and of the current one. */
export const registerInteraction = (server: McpServer, era: 'legacy' | 'modern'): void => {
  registerPushed(server)
  if (era === 'legacy') return
  // An option of the server's constructor; the product needs none, so its factory does not take one.
  Reflect.set(server.server, '_requestStateVerify', codec.verify)
  registerOneRound(server)
  registerWithState(server)
  registerForStateless(server)
}

const registerPushed = (server: McpServer) => {
  server.registerTool(
    'test_sampling',
    { ...about('test_sampling'), inputSchema: z.object({ prompt: z.string() }) },
    async ({ prompt }, ctx) => {
      const { content } = await ctx.mcpReq.requestSampling(
        { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 },
        { relatedRequestId: ctx.mcpReq.id },
      )
      return text(`LLM response: ${JSON.stringify(content)}`)
    },
  )
  const elicits = (name: string, requestedSchema: unknown, message = 'Please answer') =>
    server.registerTool(
      name,
      { ...about(name), inputSchema: z.object({ message: z.string().optional() }) },
      async (args, ctx) => {
        // On the stream of the call itself: the other one may not be open yet, and what is sent there is lost.
        const { action, content } = await ctx.mcpReq.elicitInput(
          { message: args.message ?? message, requestedSchema: requestedSchema as never },
          { relatedRequestId: ctx.mcpReq.id },
        )
        return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)
      },
    )
  const string = (description: string) => ({ type: 'string', description })
  elicits('test_elicitation', {
    type: 'object',
    properties: { username: string("User's response"), email: string("User's email address") },
    required: ['username', 'email'],
  })
  elicits('test_elicitation_sep1034_defaults', {
    type: 'object',
    properties: {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
  })
  const titled = (kind: string) =>
    ['First', 'Second', 'Third'].map((word, index) => ({
      const: `value${index + 1}`,
      title: `${word} ${kind}`,
    }))
  const options = ['option1', 'option2', 'option3']
  elicits('test_elicitation_sep1330_enums', {
    type: 'object',
    properties: {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled('Option') },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
    },
  })
}

const registerOneRound = (server: McpServer) => {
  const tool = 'test_input_required_result'
  server.registerTool(`${tool}_elicitation`, about(`${tool}_elicitation`), ctx => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', z.object({ name: z.string() }))
    return answer
      ? text(`Hello, ${answer.name}!`)
      : inputRequired({ inputRequests: { user_name: ask('What is your name?', 'name') } })
  })
  server.registerTool(`${tool}_sampling`, about(`${tool}_sampling`), ctx => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'capital_question')
    return answer.kind === 'sampling'
      ? text(JSON.stringify(answer.result.content))
      : inputRequired({
          inputRequests: { capital_question: generate('What is the capital of France?', 100) },
        })
  })
  server.registerTool(`${tool}_list_roots`, about(`${tool}_list_roots`), ctx => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'client_roots')
    return answer.kind === 'roots'
      ? text(answer.roots.map(root => root.uri).join(', '))
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
  })
  server.registerTool(`${tool}_capabilities`, about(`${tool}_capabilities`), ctx => {
    const declared = Reflect.get(ctx.mcpReq.envelope ?? {}, CLIENT_CAPABILITIES_META_KEY) ?? {}
    if (Object.keys(ctx.mcpReq.inputResponses ?? {}).length > 0) return text('thank you')
    const inputRequests = {
      ...('elicitation' in declared && { name: ask('What is your name?', 'name') }),
      ...('sampling' in declared && { greeting: generate('Generate a greeting', 50) }),
    }
    return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : text('nothing to ask')
  })
  server.registerPrompt(`${tool}_prompt`, about(`${tool}_prompt`), ctx => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_context')
    return answer
      ? { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${answer.context}` } }] }
      : inputRequired({
          inputRequests: { user_context: ask('What context should the prompt use?', 'context') },
        })
  })
}

const registerWithState = (server: McpServer) => {
  const tool = 'test_input_required_result'
  const confirmed = (name: string) =>
    server.registerTool(name, about(name), async ctx => {
      const state = ctx.mcpReq.requestState<{ step: string }>()
      return state?.step === 'confirm' && ctx.mcpReq.inputResponses
        ? text('state-ok')
        : inputRequired({
            inputRequests: { confirm: ask('Please confirm', 'ok', z.boolean()) },
            requestState: await codec.mint({ step: 'confirm' }),
          })
    })
  confirmed(`${tool}_request_state`)
  confirmed(`${tool}_tampered_state`)
  server.registerTool(`${tool}_multiple_inputs`, about(`${tool}_multiple_inputs`), async ctx => {
    const keys = ['user_name', 'greeting', 'client_roots']
    const answered = keys.every(key => inputResponse(ctx.mcpReq.inputResponses, key).kind !== 'missing')
    return answered && ctx.mcpReq.requestState()
      ? text('all three were answered')
      : inputRequired({
          inputRequests: {
            user_name: ask('What is your name?', 'name'),
            greeting: generate('Generate a greeting', 50),
            client_roots: inputRequired.listRoots(),
          },
          requestState: await codec.mint({ step: 'all' }),
        })
  })
  server.registerTool(`${tool}_multi_round`, about(`${tool}_multi_round`), async ctx => {
    const state = ctx.mcpReq.requestState<{ step: string }>()?.step
    const answers = ctx.mcpReq.inputResponses
    if (state === 'two' && acceptedContent(answers, 'step2')) return text('both rounds are done')
    const step = state === 'one' && acceptedContent(answers, 'step1') ? 'two' : 'one'
    return inputRequired({
      inputRequests:
        step === 'one'
          ? { step1: ask('Step 1: What is your name?', 'name') }
          : { step2: ask('Step 2: What is your favorite color?', 'color') },
      requestState: await codec.mint({ step }),
    })
  })
}

const registerForStateless = (server: McpServer) => {
  server.registerTool('test_missing_capability', about('test_missing_capability'), () =>
    inputRequired({ inputRequests: { greeting: generate('Generate a greeting', 50) } }),
  )
  server.registerTool('test_streaming_elicitation', about('test_streaming_elicitation'), async ctx => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    if (progressToken !== undefined)
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
    return acceptedContent(ctx.mcpReq.inputResponses, 'user_name')
      ? text('thank you')
      : inputRequired({ inputRequests: { user_name: ask('What is your name?', 'name') } })
  })
  server.registerTool('test_logging_tool', about('test_logging_tool'), async ctx => {
    await ctx.mcpReq.log('info', 'a line')
    return text('logged, if asked for')
  })
}
