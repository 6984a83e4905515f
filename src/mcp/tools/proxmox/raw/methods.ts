export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const
