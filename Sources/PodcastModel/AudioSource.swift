/// The location of an episode’s audio: a file on this machine, or a web address. Nothing else is passed to the engine,
/// whose library would also open devices, filter graphs and other pseudo addresses.
public enum AudioSource: Sendable, Hashable, CustomStringConvertible {
    /// A file at an absolute path.
    case file(path: String)
    /// An http or https address.
    case web(url: String)

    /// The source at an enclosure’s address: `http:`, `https:`, `file:` (on this machine) or an absolute path.
    ///
    /// - Throws: `episodeUnavailable` for an empty address, `badURL` for any other that isn’t one of these.
    public init(enclosure address: String) throws(Failure) {
        guard !address.isEmpty else { throw Failure(.episodeUnavailable, "The episode has no audio.") }
        guard !address.utf8.contains(where: \.isASCIIControl) else {
            throw Failure(.badURL, "The episode’s address contains control characters.")
        }
        if address.hasPrefix("/") {
            self = .file(path: address)
            return
        }
        // The engine’s library must not receive a malformed address, so the check is the same as for fetches.
        guard let valid = WebAddress(address), valid.scheme != "file" || address.lowercased().hasPrefix("file:") else {
            throw Failure(
                .badURL,
                "“\(WebAddress.quotable(address))” isn’t an http, https or file address, and only these can be played.")
        }
        self = valid.filePath.map(Self.file) ?? .web(url: valid.text)
    }

    /// The path or address.
    public var description: String {
        switch self {
        case .file(let path): path
        case .web(let url): url
        }
    }
}
