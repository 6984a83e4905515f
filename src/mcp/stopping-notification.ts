/**
 * The daemon sends this to bridges when a user stops it. A bridge then starts no daemon until its client sends a
 * request, because the user may be about to start another daemon, or want none. The client does not see it.
 */
export const STOPPING_METHOD = 'notifications/deputy/stopping'
