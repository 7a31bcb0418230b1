import PodcastModel

extension WebAddress {
    /// Whether the server is this machine, by a loopback address or name.
    var isLoopback: Bool {
        guard let name = origin?.host else { return false }
        if name == "localhost" || name.hasSuffix(".localhost") || name == "[::1]" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}
