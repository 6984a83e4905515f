import type { ManifestTemplate } from '../config/manifest-templates.ts'
import type { Connection } from './transport.ts'

/** The calls about manifests that were saved by name. */
export const createTemplateCalls = ({ retry }: Connection) => ({
  templates: async (signal?: AbortSignal): Promise<readonly ManifestTemplate[]> =>
    (await retry<{ templates: readonly ManifestTemplate[] }>({ path: '/api/templates', signal })).templates,

  saveTemplate: (name: string, manifest: Readonly<Record<string, unknown>>): Promise<void> =>
    retry({ method: 'PUT', path: templatePath(name), json: manifest }),

  deleteTemplate: (name: string): Promise<void> => retry({ method: 'DELETE', path: templatePath(name) }),
})

const templatePath = (name: string): string => `/api/templates/${encodeURIComponent(name)}`
