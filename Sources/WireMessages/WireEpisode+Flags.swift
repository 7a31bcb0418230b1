extension WireEpisode {
    /// The flag of episodes in the inbox: a refresh found the episode, and the inbox wasn’t cleared since then.
    package static let newFlag: UInt32 = 1
    /// The flag of episodes that the feed no longer contains.
    package static let goneFlag: UInt32 = 2
}
