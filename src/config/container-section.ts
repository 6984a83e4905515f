import { z } from 'zod'

/** The setting `container`. */
export const containerSchema = z.strictObject({
  enabled: z.boolean().default(true),
  host: z
    .string()
    .regex(/^(?:unix|npipe|tcp|ssh):\/\/./, "is not an address such as 'unix:///run/podman/podman.sock'")
    .optional()
    .describe(
      'Address of the engine; default: DOCKER_HOST, the docker context, CONTAINER_HOST, the usual sockets',
    ),
  image: z.string().min(1).optional().describe('Image of jobs that do not name one'),
  users: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe('User by pattern of an image; default: that of the image, or 1000:1000 where that is root'),
  runtimeClass: z.string().min(1).optional().describe('OCI runtime of the engine, such as runsc or kata'),
  warm: z.array(z.string().min(1)).default([]).describe('Images that a container is kept started for'),
  warmAge: z.number().int().min(60).default(3600).describe('Seconds after which such a container is renewed'),
})
