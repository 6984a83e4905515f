/**
 * The daemon's last line to a bridge when it is stopped on purpose: whoever stopped it may be about to start another
 * one, or wants none. The bridge keeps it to itself and looks for a daemon only when its client asks for something.
 */
export const STOPPING_METHOD = 'notifications/deputy/stopping'
