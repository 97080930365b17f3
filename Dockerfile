# One binary in a small image. Build: docker build -t mailwright .
# Run: docker run -p 25:2525 -p 8080:8080 -v mailwright:/data -e MAILWRIGHT_SMTP__DOMAIN=mail.example.org mailwright

FROM oven/bun:1.4.5 AS build
WORKDIR /src
COPY package.json bun.lock bunfig.toml ./
COPY patches patches
RUN bun install --frozen-lockfile
COPY tsconfig.json config.example.toml ./
COPY migrations migrations
COPY scripts scripts
COPY src src
RUN bun scripts/build.ts --outfile /mailwright
# A folder that the user of the next stage may write to; a volume takes its owner over.
RUN mkdir -m 700 /empty

FROM debian:bookworm-slim
COPY --from=build /mailwright /usr/local/bin/mailwright
COPY --from=build --chown=10001:10001 /empty /data
COPY --from=build --chown=10001:10001 /empty /programs
ENV MAILWRIGHT_DATA__DIR=/data
# Where programs of tool servers run, if you add any to the image.
ENV MAILWRIGHT_MCP__DIR=/programs
# The runtime sends 256 requests at once by itself; a model or a tool server that hangs must not use them up.
ENV BUN_CONFIG_MAX_HTTP_REQUESTS=4096
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 2525 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=10s CMD ["mailwright", "healthcheck"]
ENTRYPOINT ["mailwright"]
CMD ["serve"]
