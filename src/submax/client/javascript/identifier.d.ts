/** A unique id that sorts by the time at which it was made: a UUID of version 7 (RFC 9562). */
export declare function newIdentifier(): string;
