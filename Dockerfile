# The HTTP server: MCP at /mcp, REST at /api, as an ordinary user.
FROM node:22-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/copy-programs.js scripts/bundle.js ./scripts/
COPY src ./src
COPY web ./web
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:22-bookworm-slim
# Sandboxes need bubblewrap; nodes, and engines on other computers, need ssh.
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap openssh-client ca-certificates \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /src/package.json ./
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /src/dist ./dist
RUN mkdir /data && chown node:node /data \
  && chmod +x dist/cli/main.js && ln -s /app/dist/cli/main.js /usr/local/bin/deputy
USER node
ENV NODE_ENV=production DEPUTY_HOME=/data
VOLUME /data
EXPOSE 8764
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8764/livez').then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["deputy"]
# Reachable from outside the container only; who may ask is decided by the token in /data/state/token.
CMD ["serve", "--host", "0.0.0.0", "--port", "8764"]
