/** The part of pino that this client uses. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {} }
