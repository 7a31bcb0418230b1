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
}
