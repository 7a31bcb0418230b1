/// The kind of file that was requested from a web server, which determines the message and code of a refusal.
public enum RequestedFile: Sendable {
    /// An episode’s audio, to play or download.
    case audio
    /// The feed of a podcast.
    case feed
    /// The chapters of an episode.
    case chapters

    fileprivate var noun: String { self == .feed ? "feed" : "file" }
    fileprivate var absent: FailureCode { self == .audio ? .episodeUnavailable : .notFound }
    fileprivate var refused: FailureCode { self == .audio ? .streamFailed : .fetchFailed }
}

extension Failure {
    /// The failure for a web server that refused with a status; retryable if the server may succeed later.
    public init(refusedWith status: Int, by host: String, asking what: RequestedFile) {
        // A feed’s address was entered by the user, who can correct it.
        let isFeed = what == .feed
        let reason =
            switch status {
            case 401, 403: "refuses access (HTTP \(status))" + (isFeed ? "; check the address and the password" : "")
            case 404: "has no such \(what.noun) (HTTP 404)" + (isFeed ? "; check the address" : "")
            case 410: "no longer has this \(what.noun) (HTTP 410)"
            case 429: "is limiting requests; try again later (HTTP 429)"
            case 500...: "reports a server error (HTTP \(status))" + (isFeed ? "; try again later" : "")
            default: "answered with HTTP \(status)"
            }
        let isAbsent = status == 404 || status == 410
        self.init(
            code: (isAbsent ? what.absent : what.refused).rawValue, message: "\(host) \(reason).",
            retry: status >= 500 || [408, 425, 429].contains(status))
    }

    /// The message about a host whose name has no address.
    public static func unknownHost(_ host: some StringProtocol) -> String {
        "\(host) can’t be found: its name has no address, or there is no network."
    }

    /// The message about a host to which no connection was established.
    public static func unreachableHost(_ host: some StringProtocol, _ reason: some StringProtocol) -> String {
        "\(host) can’t be reached: \(reason)."
    }

    /// The refusal of a text that isn’t a valid `WebAddress`, with the reason. A user and password in it are removed.
    public static func unusableAddress(_ text: String) -> Failure {
        Failure(
            .badURL,
            "“\(WebAddress.quotable(text))” isn’t a usable address: \(WebAddress.flaw(of: text)).\(encodingHint(for: text))"
        )
    }

    /// Advice about a password with a character that ends the authority of an address.
    private static func encodingHint(for text: String) -> String {
        let bytes = Array(text.utf8)
        guard let (credentials, followsSlashes) = WebAddress.possibleCredentials(in: bytes), followsSlashes,
            bytes[credentials].contains(where: { "/?#".utf8.contains($0) })
        else { return "" }
        return " In a password, write “/” as %2F, “?” as %3F, “#” as %23 and “@” as %40, or use --user."
    }
}

extension WebAddress {
    /// Returns an unparsed address for a message: shortened, without user and password.
    public static func quotable(_ text: String) -> String {
        let shown = redacted(text).prefix(200)
        return String(String.UnicodeScalarView(shown.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }))
    }
}
