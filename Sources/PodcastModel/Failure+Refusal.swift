extension Failure {
    /// A web server that refused with a status, by its host. Only what it may have by itself later is worth another try.
    public init(refusedWith status: Int, by host: String) {
        switch status {
        case 404, 410:
            self.init(.episodeUnavailable, "\(host) has no such file any more (HTTP \(status)).")
        case 401, 403:
            self.init(
                code: FailureCode.streamFailed.rawValue, message: "\(host) does not let us have it (HTTP \(status)).",
                retry: false)
        default:
            self.init(
                code: FailureCode.streamFailed.rawValue, message: "\(host) answered with HTTP \(status).",
                retry: status >= 500 || [408, 425, 429].contains(status))
        }
    }

    /// The refusal of a text that `WebAddress` doesn’t accept, with the reason. A user and password in it are left out.
    public static func unusableAddress(_ text: String) -> Failure {
        Failure(
            .badURL, "“\(WebAddress.quotable(text))” isn’t a usable address: \(WebAddress.flaw(of: text)).")
    }
}

extension WebAddress {
    /// Any text that was meant as an address, shortened and without user and password, for sentences.
    public static func quotable(_ text: String) -> String {
        let bytes = text.utf8
        var shown = String(text.prefix(200))
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")),
            let slash = bytes.indices.first(where: {
                bytes[$0] == UInt8(ascii: "/") && bytes[$0...].starts(with: "//".utf8)
            })
        {
            let start = bytes.index(slash, offsetBy: 2)
            let rest = bytes[bytes.index(after: at)...]
            if start <= at, !bytes[start..<at].contains(UInt8(ascii: "/")) {
                shown = String(decoding: Array(bytes[..<start]) + Array(rest), as: UTF8.self)
                shown = String(shown.prefix(200))
            }
        }
        return String(String.UnicodeScalarView(shown.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }))
    }
}
